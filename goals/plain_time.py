"""Times in words, put into the few words that `spoken_time` knows (mission A12)."""

import re
from collections.abc import Sequence
from typing import Final

MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
NUMBERS: Final = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
WORDS: Final = {
    **{word: str(n) for n, word in enumerate(NUMBERS, 1)},
    "noon": "12:00",
    "midday": "12:00",
    "midnight": "0:00",
    "tonight": "today night",
}
PARTS: Final = {
    "morning": ("am", "9:00"),
    "afternoon": ("pm", "15:00"),
    "evening": ("pm", "19:00"),
    "night": ("pm", "20:00"),
}
"""Of a day: the half of it to which an hour belongs, and the time that is meant when none is said."""
EVERY: Final = (["every"], ["every", "other"], ["every", "second"])
"""After these a part of a day is one of many days."""


def plain(text: str) -> str:
    """In small letters, with figures for numbers and a clock for a part of the day: "tonight at eight" is "today at 8
    pm"."""
    said = " ".join(WORDS.get(word, word) for word in text.lower().replace(",", " ").split()).split()
    part = next((n for n, word in enumerate(said) if word.removesuffix("s") in PARTS), None)
    if part is None:
        return " ".join(said)
    half, otherwise = PARTS[said[part].removesuffix("s")]
    before = said[:part]
    for opening, means in ((["in", "the"], []), (["at"], []), (["this"], ["today"])):
        if before[-len(opening) :] == opening:
            before[-len(opening) :] = means
    rest = said[part + 1 :]
    said = before + (["day"] if before in EVERY else []) + rest
    clock = _clock_in(said)
    if clock is None:
        return " ".join([*said, otherwise])
    hour = int(re.split("[:.]", said[clock])[0])
    if 1 <= hour <= 12 and said[clock + 1 : clock + 2] not in (["am"], ["pm"]):
        said.insert(clock + 1, half)
    return " ".join(said)


def _clock_in(said: Sequence[str]) -> int | None:
    """Where the clock stands in a phrase: after "at", with minutes, or as a figure at its end that is no day."""
    for n, word in enumerate(said):
        if re.fullmatch(r"\d{1,2}[:.]\d{2}", word) or (_is_hour(word) and said[n - 1 : n] == ["at"]):
            return n
    ends_in_one = len(said) > 1 and _is_hour(said[-1]) and not any(month.startswith(said[-2]) for month in MONTHS)
    return len(said) - 1 if ends_in_one else None


def _is_hour(word: str) -> bool:
    return word.isdecimal() and len(word) <= 2
