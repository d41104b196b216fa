"""Text that PostgreSQL, JSON and people can all take.

Models, tools and users produce NUL characters and halves of surrogate pairs. A text column, JSONB and UTF-8 each
refuse them in their own way (cases STO-01, STO-02), so text is cleaned once, where it enters.
"""

import re
from typing import cast

from pydantic import JsonValue

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_JOINED = re.compile("[\u0300-\u036f\u200d\u20e3\ufe00-\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Control characters, those of no width, which may spell whole sentences (Unicode tags), and those that turn the order
of reading; but for line breaks and tabs (threat T17)."""

_JOINERS = "\u200c\u200d"

_MARKS_OF_LINES = re.compile(r"^[ \t]*(?:[-*+>]|\d+[.)]|`{3,}\S*)[ \t]*(?:\[[ xX]\][ \t]*)?", re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t].*$", re.MULTILINE)


def clean(text: str) -> str:
    """Return `text` with surrogate pairs joined and everything that cannot be stored shown as U+FFFD."""
    if _UNSTORABLE.search(text) is None:
        return text
    joined = _PAIR.sub(lambda pair: pair[0].encode("utf-16", "surrogatepass").decode("utf-16"), text)
    return _UNSTORABLE.sub(REPLACEMENT, joined)


def visible(text: str) -> str:
    """Return `text` without what is `UNSEEN` (threat T17), but for joiners between what is seen, of which emoji and
    words of some scripts are made."""
    if not UNSEEN.sub("", text).strip():
        return ""
    return UNSEEN.sub(lambda found: found[0] if found[0] in _JOINERS else "", text)


def clean_json(value: object) -> JsonValue:
    """Return a JSON value with every string (keys too) cleaned."""
    match value:
        case str():
            return clean(value)
        case dict():
            return {clean(str(key)): clean_json(item) for key, item in value.items()}
        case list() | tuple():
            return [clean_json(item) for item in value]
        case _:
            return cast(JsonValue, value)


def newlines(text: str) -> str:
    """Return the text of a form as it is kept: browsers send CR LF, the store holds LF."""
    return text.replace("\r\n", "\n")


def legible(text: str) -> str:
    """Return `text` without what nobody sees of it."""
    return UNSEEN.sub("", text)


def clip(text: str, length: int) -> str:
    """Return at most `length` characters of `text` on one line, cut between graphemes, with an ellipsis when cut.

    Combining marks, emoji joiners, variation selectors, skin tones and flag pairs stay with their base character.
    """
    flat = " ".join(clean(text).split())
    if len(flat) <= length:
        return flat
    cut = max(length - 1, 0)
    while cut > 0 and _inside_grapheme(flat, cut):
        cut -= 1
    return flat[:cut].rstrip() + "…"


def _inside_grapheme(text: str, cut: int) -> bool:
    after, before = text[cut], text[cut - 1]
    if _JOINED.match(after) or before == "\u200d":
        return True
    if _FLAG.match(after) and _FLAG.match(before):
        start = cut
        while start > 0 and _FLAG.match(text[start - 1]):
            start -= 1
        return (cut - start) % 2 == 1
    return False


def shortened(text: str, longest: int) -> str:
    """Return `text` when it has at most `longest` characters; else its head, how much was left out, and its tail,
    which make up no more than that: what was shortened once stays as it is."""
    if len(text) <= longest:
        return text
    kept = max(longest - len(_left_out(len(text), len(text))), 0)
    head = kept * 3 // 4
    mark = _left_out(len(text) - kept, len(text))
    return f"{text[:head]}{mark}{text[len(text) - (kept - head) :]}"[:longest]


def _left_out(number: int, of: int) -> str:
    return f"\n[… {number:,} of {of:,} characters left out …]\n"


def without_marks(markdown: str) -> str:
    """Return the words of a markdown text, without headings and the marks that only a page turns into form."""
    return _MARKS_OF_LINES.sub("", _HEADING.sub("", markdown)).replace("**", "")
