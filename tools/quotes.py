"""Evidence for what is kept of a person: their own words, and where they said them (mission D11).

A quote counts when it stands, word by word, in a message that the person wrote in the same conversation. Only blanks
may differ. What an agent or a tool said, a decision, or what begins a helper's task is none of it, whoever repeats it.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from pydantic import BaseModel, ConfigDict, JsonValue

from memory.models import ThreadMessage
from memory.text import clean, clip
from tools.seen import typed

LONGEST: Final = 500
SHORTEST: Final = 8
"""Characters of a quote that is not a whole message: fewer are found in whatever somebody wrote."""
MOST_QUOTES: Final = 50
FIRST_WITHOUT_BLANKS: Final = "\u0e00"
"""Thai, and most of what comes after it, is written without blanks between words."""


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
    return [_found(thread_id, flat(quote)) for quote in quotes]


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


def _found(thread_id: UUID, quote: str) -> Quote:
    if not quote:
        raise NotSaid("A quote is blank.")
    if len(quote) > LONGEST:
        raise NotSaid(f"A quote has {len(quote)} characters; at most {LONGEST} are kept.")
    messages = typed(thread_id).filter(content__contains=quote.split()[0])
    for message in messages.order_by("-position").iterator():
        if _stands(quote, flat(message.content)):
            return Quote(quote=quote, message=message.pk, said_at=message.created_at)
    raise NotSaid(
        f"“{clip(quote, 100)}” is not found in what the user has written here. Quote a passage of theirs word by word, "
        f"at least {SHORTEST} characters or a whole message; nothing that you or a tool said is evidence."
    )


def _stands(quote: str, text: str) -> bool:
    """Whether whole words of a text are the quote, and enough of them."""
    if len(quote) < SHORTEST:
        return quote == text
    return any(_is_whole(text, at, at + len(quote)) for at in _places(quote, text))


def _places(quote: str, text: str) -> Iterator[int]:
    at = text.find(quote)
    while at >= 0:
        yield at
        at = text.find(quote, at + 1)


def _is_whole(text: str, begin: int, end: int) -> bool:
    return not (_joins(text, begin) or _joins(text, end))


def _joins(text: str, place: int) -> bool:
    """Whether the characters around a place belong to one word."""
    around = text[max(place - 1, 0) : place + 1]
    return len(around) == 2 and all(each.isalnum() and each < FIRST_WITHOUT_BLANKS for each in around)


def messages_of(evidence: Iterable[Quote]) -> dict[UUID, str]:
    """The messages that quotes stand in, by id."""
    found = ThreadMessage.objects.filter(pk__in={each.message for each in evidence})
    return dict(found.values_list("pk", "content"))
