"""Evidence for what is kept of a person: their own words, and where they said them (mission D11).

A quote counts when it stands in a message that the person wrote in the same conversation: whole words, of which only
blanks may differ, and enough of them to say something. What an agent or a tool said, a decision, or what begins a
helper's task is none of it, whoever repeats it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Final
from uuid import UUID

from django.db.models import Q
from pydantic import BaseModel, ConfigDict, JsonValue

from memory.models import ThreadMessage
from memory.text import clean, clip
from tools.seen import typed
from tools.words import amount, is_whole

LONGEST: Final = 500
AROUND: Final = 200
"""Characters of its message that are shown on each side of a quote."""
MOST_QUOTES: Final = 50
WORDS: Final = 3
LETTERS: Final = 15
LETTERS_OF_ALL: Final = 5
LETTERS_WITHOUT_BLANKS: Final = 6
LETTERS_OF_ALL_WITHOUT_BLANKS: Final = 2
"""A passage says something by itself from so many words or letters on, and an answer that is no more than itself
("Alone.") from fewer letters on; "ok" and "?" do not. Writing without blanks takes fewer letters (`tools.words`)."""


class NotSaid(Exception):
    """A quote is no evidence; the message says why, for models and people."""


class Quote(BaseModel):
    """
    quote: with single blanks. message: where it stands. said_at: when that was written.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    quote: str
    message: UUID
    said_at: datetime


def verified(thread_id: UUID, quotes: Sequence[str]) -> list[Quote]:
    """Find each quote in what the user wrote in a thread, in the newest message that has it.

    Raises:
        NotSaid: there is none, or one of them stands nowhere.
    """
    if not quotes:
        raise NotSaid("Evidence is missing: quote what the user has written, word by word.")
    if len(quotes) > MOST_QUOTES:
        raise NotSaid(f"At most {MOST_QUOTES} quotes are kept as evidence of one thing.")
    wanted = [_readable(flat(quote)) for quote in quotes]
    found = _found(thread_id, wanted)
    for quote in wanted:
        if quote not in found:
            raise NotSaid(
                f"“{clip(quote, 100)}” is not found in what the user has written here, or says too little. Quote a "
                f"passage of theirs word by word, at least {WORDS} words; nothing that you or a tool said is evidence."
            )
    return [found[quote] for quote in wanted]


def joined(evidence: Sequence[JsonValue], more: Sequence[Quote]) -> list[JsonValue]:
    """Evidence as it is stored, with some more; the same quote of the same message is there once.

    Raises:
        NotSaid: more than MOST_QUOTES.
    """
    stored = [each.model_dump(mode="json") for each in more]
    whole = [*evidence, *(each for place, each in enumerate(stored) if each not in [*evidence, *stored[:place]])]
    if len(whole) > MOST_QUOTES:
        raise NotSaid(f"At most {MOST_QUOTES} quotes are kept as evidence of one thing.")
    return whole


def read(evidence: Sequence[JsonValue]) -> list[Quote]:
    """Evidence as it was stored."""
    return [Quote.model_validate(each) for each in evidence]


def flat(text: str) -> str:
    return " ".join(clean(text).split())


def _readable(quote: str) -> str:
    if not quote:
        raise NotSaid("A quote is blank.")
    if len(quote) > LONGEST:
        raise NotSaid(f"A quote has {len(quote)} characters; at most {LONGEST} are kept.")
    return quote


def _found(thread_id: UUID, quotes: Sequence[str]) -> dict[str, Quote]:
    """Those of some quotes that stand in what the user wrote, each in the newest message. Each message is read once."""
    likely = reduce(or_, (Q(content__contains=quote.split()[0]) for quote in quotes))
    missing, found = set(quotes), dict[str, Quote]()
    for message in typed(thread_id).filter(likely).order_by("-position").iterator():
        text = flat(message.content)
        here = {quote for quote in missing if _stands(quote, text)}
        found |= {each: Quote(quote=each, message=message.pk, said_at=message.created_at) for each in here}
        missing -= here
        if not missing:
            break
    return found


def _stands(quote: str, text: str) -> bool:
    """Whether whole words of a text are the quote, and enough of them."""
    return _says_something(quote, is_all=quote == text) and any(
        is_whole(text, at, at + len(quote)) for at in _places(quote, text)
    )


def _says_something(quote: str, *, is_all: bool) -> bool:
    words, letters, without_blanks = amount(quote)
    if is_all and (letters >= LETTERS_OF_ALL or without_blanks >= LETTERS_OF_ALL_WITHOUT_BLANKS):
        return True
    return words >= WORDS or letters >= LETTERS or without_blanks >= LETTERS_WITHOUT_BLANKS


def _places(quote: str, text: str) -> Iterator[int]:
    at = text.find(quote)
    while at >= 0:
        yield at
        at = text.find(quote, at + 1)


@dataclass(frozen=True, slots=True)
class Passage:
    """Where a quote stands: as it was written, with what stands before and after it. run: that answered the message."""

    before: str
    quote: str
    after: str
    run: UUID | None


def passages(quotes: Iterable[Quote]) -> dict[Quote, Passage]:
    """The passages that quotes stand in; none of a message that is gone. One message at a time is held in memory."""
    wanted: dict[UUID, set[Quote]] = {}
    for quote in quotes:
        wanted.setdefault(quote.message, set()).add(quote)
    messages = ThreadMessage.objects.filter(pk__in=wanted).values_list("pk", "content", "run")
    found: dict[Quote, Passage] = {}
    for pk, content, run in messages.iterator(chunk_size=1):
        found |= {quote: around for quote in wanted[pk] if (around := _around(quote.quote, content, run))}
    return found


def _around(quote: str, content: str, run: UUID | None) -> Passage | None:
    blanks_differ = re.compile(r"\s+".join(map(re.escape, quote.split())))
    for found in blanks_differ.finditer(content):
        begin, end = found.span()
        if is_whole(content, begin, end):
            return Passage(_last_words(content[:begin]), found[0], _first_words(content[end:]), run)
    return None


def _first_words(text: str) -> str:
    """At most AROUND characters, cut at a blank if there is one."""
    if len(text) <= AROUND:
        return text
    words, blank, _rest = text[:AROUND].rpartition(" ")
    return f"{words if blank else text[:AROUND]}…"


def _last_words(text: str) -> str:
    return _first_words(text[::-1])[::-1]
