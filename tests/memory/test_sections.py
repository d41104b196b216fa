"""Sections of markdown, from a heading to the next of its level (mission D3)."""

import time

import pytest

from memory.sections import NoSection, sections, with_new_section, with_section

TEXT = """Intro

# Running

## Shoes

Red ones.

### Size

43

## Times ##

| 5 km |

```
# not a heading
```

# Food

None."""


def test_what_is_a_section() -> None:
    assert [str(each) for each in sections(TEXT)] == ["# Running", "## Shoes", "### Size", "## Times", "# Food"]
    assert [str(each) for each in sections("~~~\n# a\n```\n~~~~\n#b\n# c #\n    # d")] == ["# c"]
    assert [str(each) for each in sections("# C# #\n## #\n### a#b ## ")] == ["# C#", "## ", "### a#b"]
    assert sections("") == []


@pytest.mark.parametrize("text", ["# a" + " " * 100_000 + "b", "# a\n" * 50_000, "# a" + " #" * 50_000 + "b"])
def test_no_line_and_no_number_of_them_takes_long(text: str) -> None:
    began = time.process_time()
    assert sections(text)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("heading", ["Shoes", "shoes", "## Shoes"])
@pytest.mark.parametrize("content", ["Blue ones.", "## Shoes\n\nBlue ones.\n"])
def test_a_section_is_written_with_all_below_it(heading: str, content: str) -> None:
    assert with_section(TEXT, heading, content) == TEXT.replace("Red ones.\n\n### Size\n\n43", "Blue ones.")


def test_the_last_one_and_one_that_goes() -> None:
    assert with_section(TEXT, "Food", "Much.").endswith("# Food\n\nMuch.")
    assert with_section(TEXT, "Running", " ") == "Intro\n\n# Food\n\nNone."
    assert with_section("# A", "A", "b") == "# A\n\nb"


def test_which_one_is_meant_must_be_clear() -> None:
    with pytest.raises(NoSection, match=r"no section 'Drinks'(.|\n)*## Shoes\n### Size"):
        with_section(TEXT, "Drinks", "x")
    with pytest.raises(NoSection, match="no section '# Shoes'"):
        with_section(TEXT, "# Shoes", "x")
    twice = f"{TEXT}\n\n### Shoes\n\nfor walking"
    with pytest.raises(NoSection, match="2 sections are called"):
        with_section(twice, "Shoes", "x")
    assert with_section(twice, "### Shoes", "x") == f"{TEXT}\n\n### Shoes\n\nx"


def test_a_new_one_stands_at_the_end() -> None:
    assert with_new_section("", "Plan", "x") == "## Plan\n\nx"
    assert with_new_section("a\n", "# Plan", "x\n") == "a\n\n# Plan\n\nx"
    with pytest.raises(NoSection, match="already"):
        with_new_section(TEXT, "food", "x")
    with pytest.raises(NoSection, match="needs a heading"):
        with_new_section(TEXT, "## ", "x")
