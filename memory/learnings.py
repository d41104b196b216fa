"""Learnings: every write that a face or a tool may ask for (mission E1). A contradiction takes the place of what it
contradicts, so they never pile up."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db.models import Max
from django.db.models.functions import Now

from memory.marks import names
from memory.models import Author, Learning, Source, Thread, ThreadMessage
from memory.room import make_sure_of_room, size
from memory.text import clean, visible

ALIKE: Final = 0.75
"""From here on two sentences speak of the same thing, by the share of characters that they have in common."""


class LearningRefused(Exception):
    """It cannot be kept as asked; the message is for people and models alike."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a learning comes from: the run and the call that wrote it, and whose texts had been read."""

    run: UUID
    action: UUID
    sources: Sequence[str] = ()


def learn(
    thread: Thread,
    text: str,
    origin: Origin | None = None,
    *,
    replacing: Learning | None = None,
    both_hold: bool = False,
) -> Learning:
    """Keep something in mind, in place of `replacing` if that is given. Within a transaction.

    Args:
        origin: None: its person has written it.
        both_hold: it is to stand beside one that is much like it.

    Raises:
        LearningRefused: blank, too long, one too many, known already, much like another one, or no room for it.
    """
    Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
    text = _checked(text)
    others = [each for each in Learning.objects.filter(thread=thread).current() if each != replacing]
    if replacing and replacing.text == text:
        raise LearningRefused(f"Number {replacing.number} says this already.")
    _must_be_new(text, others, both_hold=both_hold)
    if len(others) >= settings.WAYMARK_LEARNINGS:
        raise LearningRefused(f"At most {settings.WAYMARK_LEARNINGS} are kept. Replace one, or take one back.")
    make_sure_of_room(thread.user_id, size(text), LearningRefused, wait=False)
    learned = Learning.objects.create(
        user_id=thread.user_id,
        thread=thread,
        number=(Learning.objects.filter(thread=thread).aggregate(last=Max("number"))["last"] or 0) + 1,
        text=text,
        author=Author.AGENT if origin else Author.USER,
        sources=names(origin.sources) if origin else [],
        message=answered(thread.pk, origin.run) if origin else None,
        action=origin.action if origin else None,
    )
    if replacing:
        end(replacing, learned)
    return learned


def end(learning: Learning, replaced_by: Learning | None = None) -> None:
    """It holds no more. It stays to be read."""
    Learning.objects.filter(pk=learning.pk).update(ended_at=Now(), replaced_by=replaced_by)
    learning.refresh_from_db()


def erase(learning: Learning) -> None:
    """Delete one that has ended, for good.

    Raises:
        LearningRefused: it holds.
    """
    if learning.ended_at is None:
        raise LearningRefused("Take it back first.")
    learning.delete()


def locked_learning(user_id: int, learning_id: UUID) -> Learning | None:
    """A learning of a user that holds, kept from others until the transaction ends."""
    mine = Learning.objects.filter(pk=learning_id, user_id=user_id).current()
    return mine.select_for_update().select_related(None).first()


def numbered(thread_id: UUID, number: int) -> Learning | None:
    """What an agent calls by that number, if it holds."""
    return Learning.objects.filter(thread_id=thread_id, number=number).current().first()


def answered(thread_id: UUID, run_id: UUID) -> ThreadMessage | None:
    """What the person had said last that a run has taken up: where what it finds out comes from."""
    said = ThreadMessage.objects.filter(thread=thread_id, run=run_id, source=Source.USER)
    return said.order_by("-position").first()


def _must_be_new(text: str, others: Iterable[Learning], *, both_hold: bool) -> None:
    for other in others:
        likeness = SequenceMatcher(None, text.casefold(), other.text.casefold()).ratio()
        if likeness == 1:
            raise LearningRefused(f"Number {other.number} says this already.")
        if likeness >= ALIKE and not both_hold:
            raise LearningRefused(
                f"This is much like number {other.number}: “{other.text}”. Replace that one if it holds no more, or "
                "say that both hold."
            )


def _checked(text: str) -> str:
    text = " ".join(visible(clean(text)).split())
    if not text:
        raise LearningRefused("There is nothing in it.")
    if len(text) > Learning.TEXT_LENGTH:
        raise LearningRefused(f"It has {len(text):,} characters; at most {Learning.TEXT_LENGTH} are kept.")
    return text
