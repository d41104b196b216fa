"""Writes to what a reflective companion keeps (mission D11). Each part and assessment has evidence from the start; only
a person confirms a part or decides about a proposal."""

from collections.abc import Mapping, Sequence
from typing import Final, cast
from uuid import UUID

from django.contrib.auth.models import User
from pydantic import BaseModel, ConfigDict, JsonValue

from memory.marks import merged, names
from memory.models import Thread
from memory.text import clean
from tools.part_models import KINDS, Assessment, Part, Proposal, ProposalState, Record, Standing
from tools.quotes import flat, joined, verified
from tools.signature import digest

MOST_RECORDS: Final = 200
"""Records of a kind in one conversation."""
TEXTS: Final = 10
TEXT_LENGTH: Final = 200


class RecordRefused(Exception):
    """The record cannot be kept as asked; the message is for people and models alike."""


class Attributes(BaseModel):
    """What is known of a part: at most TEXTS of a kind, each one line of at most TEXT_LENGTH characters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    beliefs: tuple[str, ...] = ()
    fears: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    body: tuple[str, ...] = ()


def create_part(
    thread: Thread,
    name: str,
    role: str,
    attributes: Mapping[str, Sequence[str]],
    quotes: Sequence[str],
    sources: Sequence[str] = (),
) -> Part:
    """Begin a part; it is emerging until its person confirms it.

    Args:
        quotes: of what the person has written in this conversation; at least one.
        sources: whose texts its writer has read (`memory.marks`).

    Raises:
        RecordRefused: blank or too long, or there is a part of that name.
        NotSaid: a quote is no evidence.
    """
    part = Part(user_id=thread.user_id, thread=thread, sources=names(sources))
    change_part(part, name=name, role=role, attributes=attributes)
    part.evidence = joined([], verified(thread.pk, quotes))
    return _created(part)


def change_part(
    part: Part,
    *,
    name: str | None = None,
    role: str | None = None,
    attributes: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Let a part say something else, without saving it.

    Args:
        attributes: kinds that are missing stay as they are.

    Raises:
        RecordRefused: as in `create_part`.
    """
    if name is not None:
        part.name = _line(name, Part.NAME_LENGTH, "The name")
        same = Part.objects.filter(thread=part.thread_id, name__iexact=part.name).exclude(pk=part.pk)
        if other := same.first():
            raise RecordRefused(f"There is a part called {other.name!r} already (id {other.pk}); update that one.")
    if role is not None:
        part.role = _line(role, Part.ROLE_LENGTH, "The role")
    known = Attributes.model_validate(part.attributes)
    part.attributes = known.model_copy(update=_texts(attributes or {})).model_dump(mode="json")


def add_evidence(record: Part | Assessment, quotes: Sequence[str], sources: Sequence[str] = ()) -> None:
    """Add quotes to the evidence of a record, without saving it.

    Raises:
        NotSaid: a quote is no evidence, or there are too many.
    """
    record.evidence = joined(record.evidence, verified(record.thread_id, quotes))
    record.sources = merged(record.sources, sources)


def create_assessment(thread: Thread, text: str, quotes: Sequence[str], sources: Sequence[str] = ()) -> Assessment:
    """
    Raises:
        RecordRefused: blank or too long.
        NotSaid: a quote is no evidence.
    """
    text = _text(text, Assessment.TEXT_LENGTH)
    evidence = joined([], verified(thread.pk, quotes))
    kept = Assessment(user_id=thread.user_id, thread=thread, text=text, evidence=evidence, sources=names(sources))
    return _created(kept)


def create_proposal(thread: Thread, text: str, sources: Sequence[str] = ()) -> Proposal:
    """
    Raises:
        RecordRefused: blank or too long.
    """
    text = _text(text, Proposal.TEXT_LENGTH)
    return _created(Proposal(user_id=thread.user_id, thread=thread, text=text, sources=names(sources)))


def change_proposal(proposal: Proposal, *, text: str | None, done: bool, sources: Sequence[str] = ()) -> None:
    """Change what an agent may of a proposal, without saving it: the words while it is open, and that it is done once
    it was accepted.

    Raises:
        RecordRefused: it is not so.
    """
    if text is not None:
        if proposal.state != ProposalState.OPEN:
            raise RecordRefused(f"The user has decided about it ({proposal.state}); make a new proposal.")
        proposal.text = _text(text, Proposal.TEXT_LENGTH)
        proposal.sources = merged(proposal.sources, sources)
    if done:
        if proposal.state != ProposalState.ACCEPTED:
            raise RecordRefused("Only what the user has accepted can be done; nobody but the user accepts it.")
        proposal.state = ProposalState.DONE


def confirm(part: Part, shown: str) -> None:
    """Confirm a part in its person's name, without saving it.

    Args:
        shown: `digest_of` the part that the person has looked at.

    Raises:
        RecordRefused: it says something else now, or is confirmed already.
    """
    _must_be(part, shown)
    if part.status is Standing.CONFIRMED:
        raise RecordRefused("You have confirmed this already.")
    part.confirmed = part.content


def decide(proposal: Proposal, state: ProposalState, shown: str) -> None:
    """Accept or decline in its person's name, without saving it.

    Raises:
        RecordRefused: it says something else now, or was decided.
    """
    _must_be(proposal, shown)
    if proposal.state != ProposalState.OPEN:
        raise RecordRefused(f"This is {proposal.state} already.")
    proposal.state = state


def digest_of(record: Part | Proposal) -> str:
    """Identify what a record says, so that a decision holds for what was looked at alone."""
    return digest(record.kind(), record.content if isinstance(record, Part) else {"text": record.text})


def locked[R: Record](model: type[R], user_id: int, record_id: UUID, thread_id: UUID | None = None) -> R | None:
    """A record of a user, in one conversation if that is given, kept from others until the transaction ends."""
    mine = model._default_manager.select_for_update().filter(pk=record_id, user_id=user_id)
    return mine.filter(thread_id=thread_id).first() if thread_id else mine.first()


def searched(user: User | int, thread_id: UUID, words: str) -> list[Part]:
    """Parts of a conversation in which every word stands, the oldest first; all when there is none."""
    parts = Part.objects.filter(user=user, thread_id=thread_id)
    wanted = clean(words).casefold().split()
    return [part for part in parts if all(word in part.words.casefold() for word in wanted)]


def forget_sources(thread_id: UUID) -> None:
    """Take the mark off all records of a conversation: its user vouches for what was read."""
    for model in KINDS.values():
        model._default_manager.filter(thread_id=thread_id).update(sources=[])


def _created[R: Record](record: R) -> R:
    """Nobody else adds one meanwhile: one run at a time works on a conversation."""
    of_kind = type(record)._default_manager.filter(thread_id=record.thread_id)
    if of_kind.count() >= MOST_RECORDS:
        raise RecordRefused(f"At most {MOST_RECORDS} of these are kept in one conversation.")
    record.save(force_insert=True)
    return record


def _must_be(record: Part | Proposal, shown: str) -> None:
    if digest_of(record) != shown:
        raise RecordRefused("It was changed since you looked at it. Look at it again.")


def _texts(given: Mapping[str, Sequence[str]]) -> dict[str, JsonValue]:
    texts: dict[str, JsonValue] = {}
    for kind, lines in given.items():
        if len(lines) > TEXTS:
            raise RecordRefused(f"Of {kind} at most {TEXTS} are kept.")
        texts[kind] = cast(JsonValue, tuple(_line(line, TEXT_LENGTH, f"Each of {kind}") for line in lines))
    return texts


def _line(text: str, longest: int, what: str) -> str:
    return _fitting(flat(text), longest, what)


def _text(text: str, longest: int) -> str:
    return _fitting(clean(text).strip(), longest, "The text")


def _fitting(text: str, longest: int, what: str) -> str:
    if not text:
        raise RecordRefused(f"{what} is blank.")
    if len(text) > longest:
        raise RecordRefused(f"{what} may have {longest:,} characters at most, and has {len(text):,}.")
    return text
