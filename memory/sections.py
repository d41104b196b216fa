"""Sections of markdown: a heading, and what follows until the next one of the same or a higher level (mission D3)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?![^ \t])")
_FENCE: Final = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)")


class NoSection(Exception):
    """Which section is meant cannot be told; the message is for models."""


@dataclass(frozen=True, slots=True)
class Section:
    """Lines of a text: `heading` is the first of them, `end` the first that is not part of it."""

    level: int
    title: str
    heading: int
    end: int

    def __str__(self) -> str:
        return f"{'#' * self.level} {self.title}"


def sections(text: str) -> list[Section]:
    ends = dict.fromkeys(range(1, 7), text.count("\n") + 1)
    found = []
    for line, level, title in reversed(_headings(text.split("\n"))):
        found.append(Section(level, title, line, ends[level]))
        ends |= dict.fromkeys(range(level, 7), line)
    return found[::-1]


def with_section(text: str, heading: str, content: str) -> str:
    """The text with other content in one section, subsections included; without the section for blank content.

    Args:
        heading: its words, whatever their case; with its signs (`## Plan`) only of that level.
        content: what is to stand below the heading, which may be repeated at its beginning.

    Raises:
        NoSection: none has that heading, or several have.
    """
    found = _one(sections(text), heading)
    lines, content = text.split("\n"), content.strip("\n")
    first, _, rest = content.partition("\n")
    if (same := _parsed(first)) and same[1].casefold() == found.title.casefold():
        content = rest.strip("\n")
    replaced = [lines[found.heading], "", *content.split("\n")] if content.strip() else []
    after = lines[found.end :]
    if replaced and any(after):
        replaced.append("")
    return "\n".join([*lines[: found.heading], *replaced, *after]).strip("\n")


def with_new_section(text: str, heading: str, content: str) -> str:
    """The text with one more section at its end.

    Args:
        heading: its words; without signs it is of the second level.

    Raises:
        NoSection: there is one with that heading, or there are no words in it.
    """
    level, title = _parsed(heading.strip()) or (2, heading.strip())
    if not title or "\n" in title:
        raise NoSection("A section needs a heading, on one line.")
    if any(each.title.casefold() == title.casefold() for each in sections(text)):
        raise NoSection(f"There is a section {title!r} already; leave `new` out to write it anew.")
    return "\n\n".join(filter(None, [text.strip("\n"), f"{'#' * level} {title}", content.strip("\n")]))


def _one(known: Sequence[Section], heading: str) -> Section:
    level, title = _parsed(heading.strip()) or (0, heading.strip())
    found = [each for each in known if each.title.casefold() == title.casefold() and level in (0, each.level)]
    if len(found) == 1:
        return found[0]
    listed = "\n".join(map(str, known)) or "(none)"
    if not found:
        raise NoSection(f"There is no section {heading!r}. With `new` it is added. Those that there are:\n{listed}")
    raise NoSection(f"{len(found)} sections are called {heading!r}, so write the whole document. They are:\n{listed}")


def _headings(lines: Sequence[str]) -> list[tuple[int, int, str]]:
    """(line, level, title) of each; what looks like one within a fence of code is none."""
    found, fence = [], ""
    for number, line in enumerate(lines):
        if match := _FENCE.fullmatch(line):
            marks, info = match.groups()
            if not fence:
                fence = marks
            elif marks.startswith(fence) and not info.strip():
                fence = ""
        elif not fence and (parsed := _parsed(line)):
            found.append((number, *parsed))
    return found


def _parsed(line: str) -> tuple[int, str] | None:
    """Level and title of a heading, without the signs that may close it. The work grows with the line, not faster."""
    match = _HEADING.match(line)
    if match is None:
        return None
    title = line[match.end() :].strip(" \t")
    bare = title.rstrip("#")
    is_closed = bare[-1:] in ("", " ", "\t")
    return len(match[1]), bare.rstrip(" \t") if is_closed else title
