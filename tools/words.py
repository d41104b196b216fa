"""Where words begin and end, in any script, as far as it is needed to tell what somebody has said from pieces of it.

Unicode's rules for words (UAX 29) would take tables of their own; these few know marks, elisions, joined words, and the
scripts that are written without blanks, in which any letter may begin a word.
"""

from typing import Final
from unicodedata import category, combining, name

CONNECTORS: Final = frozenset("'\u2019\u2018`\u00b4\u055a\u05f3\u05f4_\u203f-\u2010\u2011\u00b7")
"""Apostrophes, low lines, hyphens and middle dots: a single one between two letters joins them."""
JOINERS: Final = frozenset("\u00ad\u200c\u200d\u2060")
"""Without width, and within words only."""
WITHOUT_BLANKS: Final = (
    *("CJK ", "IDEOGRAPHIC ", "HIRAGANA ", "KATAKANA", "HALFWIDTH KATAKANA"),
    *("THAI ", "LAO ", "KHMER ", "MYANMAR "),
)
"""How the names of their characters begin."""
VIRAMA: Final = 9
"""The combining class of what binds the letter after it to the one before it."""


def is_whole(text: str, begin: int, end: int) -> bool:
    """Whether a piece of a text is made of whole words."""
    return not (_within_word(text, begin) or _within_word(text, end))


def amount(text: str) -> tuple[int, int, int]:
    """How many words with letters a text has, how many letters, and how many of these are of a script that is written
    without blanks."""
    letters = [each for each in text if category(each)[0] == "L"]
    words = sum(any(category(each)[0] == "L" for each in word) for word in text.split())
    return words, len(letters), sum(map(_has_no_blanks, letters))


def _within_word(text: str, place: int) -> bool:
    before, after = place - 1, place
    if before >= 0 and text[before] in CONNECTORS:
        before -= 1
    elif after < len(text) and text[after] in CONNECTORS:
        after += 1
    return before >= 0 and after < len(text) and _hold_together(text[before], text[after])


def _hold_together(one: str, other: str) -> bool:
    if not (_is_of_word(one) and _is_of_word(other)):
        return False
    if category(other)[0] == "M" or other in JOINERS or one in JOINERS or combining(one) == VIRAMA:
        return True
    return not (_has_no_blanks(one) or _has_no_blanks(other))


def _is_of_word(character: str) -> bool:
    return category(character)[0] in "LMN" or character in JOINERS


def _has_no_blanks(character: str) -> bool:
    return name(character, "").startswith(WITHOUT_BLANKS)
