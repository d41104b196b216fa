"""Text that can be stored and shown whatever it was."""

import json
import unicodedata

import pytest
from hypothesis import given, strategies as st

from memory.text import clean, clean_json, clip, shortened, without_marks

FAMILY = "family 👨‍👩‍👧 ok e\u0301 🇩🇪 שלום"
GRAPHEMES = [*"family ", "👨‍👩‍👧", *" ok ", "e\u0301", " ", "🇩🇪", *" שלום"]


@pytest.mark.parametrize("length", range(1, 41))
def test_sto_02_e_a_cut_never_breaks_a_character(length: int) -> None:
    cut = clip(FAMILY, length)
    assert len(cut) <= length
    kept = cut.removesuffix("…")
    whole = ["".join(GRAPHEMES[:count]).rstrip() for count in range(len(GRAPHEMES) + 1)]
    assert kept in whole


def test_sto_01_a_nul_becomes_visible_and_an_escape_in_words_survives() -> None:
    assert clean("a\x00b") == "a\N{REPLACEMENT CHARACTER}b"
    assert clean("x\\u0000y") == "x\\u0000y"


def test_sto_02_a_halves_are_joined_and_lone_ones_replaced() -> None:
    assert clean("\ud83d\udfe1") == "🟡"
    assert clean("A\ud83d") == "A\N{REPLACEMENT CHARACTER}"


@given(st.text(alphabet=st.characters(codec=None), max_size=60))
def test_whatever_comes_can_be_encoded_and_stored(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert "\x00" not in cleaned


@given(st.text(max_size=80), st.integers(min_value=1, max_value=80))
def test_a_clip_is_never_longer_and_keeps_short_text(text: str, length: int) -> None:
    cut = clip(text, length)
    assert len(cut) <= length
    if len(" ".join(clean(text).split())) <= length:
        assert cut == " ".join(clean(text).split())


def test_head_and_tail_of_a_long_text_stay_and_what_is_missing_is_said() -> None:
    text = "a" * 500 + "z" * 500
    assert shortened(text, 1_000) == text
    head, mark, tail = shortened(text, 142).split("\n")
    assert (head, tail) == ("a" * 75, "z" * 25)
    assert mark == "[… 900 of 1,000 characters left out …]"


@given(st.text(max_size=300), st.integers(min_value=1, max_value=200))
def test_a_shortened_text_is_as_short_as_was_asked_and_is_not_shortened_again(text: str, longest: int) -> None:
    short = shortened(text, longest)
    assert len(short) <= longest
    assert shortened(short, longest) == short


def test_json_is_cleaned_at_every_depth() -> None:
    value = json.loads('{"k\\u0000": ["\\ud83d", {"x": 1}], "n": null}')
    assert clean_json(value) == {"k\ufffd": ["\ufffd", {"x": 1}], "n": None}


def test_the_sentence_of_the_test_holds_what_it_should() -> None:
    assert unicodedata.combining("\u0301")
    assert "".join(GRAPHEMES) == FAMILY


def test_the_marks_of_markdown_are_left_out_of_a_preview() -> None:
    assert without_marks("## Gear\n\n- [ ] Shoes\n- [x] **Socks**\n1. First").split() == ["Shoes", "Socks", "First"]
