"""The writes to conversations that a face may ask for: one transaction, its record, and the push after commit."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid5

import psycopg.errors
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.module_loading import import_string

from agents.attaching import Upload, check_quota, prepared
from agents.engine import bell, journal
from agents.engine.posting import Posted, post
from agents.engine.waits import end_wait
from agents.lineage import threads_below
from agents.models import UserAgent
from agents.prices import set_price
from agents.refusals import Refused, queue_full, too_many_waiting
from memory.attachments import Prepared, lock_quota, store
from memory.ids import new_id
from memory.metadata import PLAIN, MessageMetadata
from memory.models import (
    AgentHistory,
    AgentRun,
    ArchiveReason,
    Document,
    HistoryEntry,
    Learning,
    Note,
    Source,
    Thread,
    ThreadMessage,
    Trigger,
)
from memory.text import clean
from tools import parts
from tools.file_settling import forget_sources


@dataclass(frozen=True, slots=True)
class Accepted:
    """A message that is committed. `created` is false when the same client id had been accepted before; `fresh` is
    true when the run was queued for this very message."""

    message: ThreadMessage
    run_id: UUID | None
    created: bool
    fresh: bool = False


def send_message(
    thread: Thread,
    content: str,
    client_message_id: UUID | None = None,
    files: Sequence[Upload] = (),
    metadata: MessageMetadata = PLAIN,
) -> Accepted:
    """Commit a user's message, with a queued run unless one is live already (which then picks the message up).

    Args:
        thread: must come from the owner's door; its user is the author.
        client_message_id: the same id gives the same message and run, however often it is sent.
        files: what is attached; with it, the text may be blank.
        metadata: of a message without files.

    Raises:
        Refused: the text is blank or too long, a file cannot be taken (see `attaching`), too many of the user's runs
            are queued, or too many messages wait for this agent.
    """
    content = _checked(content, with_files=bool(files))
    try:
        if files and (before := _sent_before(thread, client_message_id)):
            return before
        if files:
            _check_waiting(thread)
            sent = _post_with_files(thread, content, client_message_id, prepared(files, thread.user_id))
        else:
            sent = _post(thread, content, client_message_id, metadata=metadata)
    except psycopg.errors.UniqueViolation:
        sent = None
    if sent is None:
        return _accepted_before(thread, client_message_id)
    return Accepted(sent.message, sent.run_id, created=True, fresh=sent.fresh)


class _NotAccepted(Exception):
    """What was written for the message is taken back."""


def _post_with_files(
    thread: Thread, content: str, client_message_id: UUID | None, files: Sequence[Prepared]
) -> Posted | None:
    """The files before the message, whose statement locks the thread, and both or neither."""
    message_id, metadata = new_id(), MessageMetadata(attachments=tuple(each.told for each in files))
    with contextlib.suppress(_NotAccepted), transaction.atomic():
        check_quota(lock_quota(thread.user_id), files)
        store(thread, message_id, files)
        if sent := _post(thread, content, client_message_id, metadata=metadata, message_id=message_id, inside=True):
            return sent
        raise _NotAccepted
    return None


def _post(thread: Thread, content: str, client_message_id: UUID | None, **more: Any) -> Posted | None:
    return post(
        thread,
        content,
        client_id=client_message_id,
        most=settings.WAYMARK_MAX_QUEUED_PER_USER,
        most_waiting=settings.WAYMARK_MAX_WAITING_MESSAGES,
        **more,
    )


def retry(message: ThreadMessage) -> UUID:
    """Start a new run after an error message, on the history as it is. Returns the run's id (the live one if any).

    Raises:
        Refused: the message is not an error that can be tried again, or its session is archived.
    """
    retryable = message.source == Source.ERROR and message.metadata.get("retryable")
    if not retryable or not is_last_word(message):
        raise Refused("not_retryable", "This cannot be tried again.")
    return wake(message.thread, Trigger.RETRY, message.run.context_type if message.run else "")


def retry_free(message: ThreadMessage) -> UUID:
    """Take the model that has no price for one that costs nothing, and try again.

    Raises:
        Refused: as `retry`, or the message is about no such model.
    """
    unpriced = MessageMetadata.model_validate(message.metadata).unpriced
    if unpriced is None:
        raise Refused("not_unpriced", "This is not about a model without a price.")
    kind, model = unpriced
    set_price(message.thread.user, kind, model, input=0, output=0)
    return retry(message)


def pick_answer(question: ThreadMessage, pick: int | str) -> Accepted:
    """Send the answer that was picked of those that a question gives. Whoever picks later gets what was picked first.

    Args:
        pick: its place among them, from 0; or the answer itself.

    Raises:
        Refused: it gives no such answer, its user has said something since, or as `send_message`.
    """
    answers = dict(enumerate(MessageMetadata.model_validate(question.metadata).asks or ()))
    picked = answers.get(pick) if isinstance(pick, int) else pick
    if picked is None or picked not in answers.values():
        raise Refused("no_answer", "There is no such answer.")
    client_id = uuid5(question.pk, "answer")
    before = ThreadMessage.objects.filter(thread=question.thread_id, client_message_id=client_id)
    if not before.exists() and not ThreadMessage.objects.unanswered().filter(pk=question.pk).exists():
        raise Refused("answered", "You have written something since. Write your answer as a message.")
    return send_message(question.thread, picked, client_id, metadata=MessageMetadata(answers=question.pk))


def is_last_word(message: ThreadMessage) -> bool:
    """Whether nothing but notices was said since, and its session is still the live one."""
    newer = ThreadMessage.objects.exclude(NOTICE).filter(thread=message.thread_id, position__gt=message.position)
    gone = AgentHistory.objects.done().filter(thread=message.thread_id, position__gte=message.position)
    return not newer.exists() and not gone.exists()


NOTICE: Final = Q(metadata__has_key="budget") & ~Q(metadata__has_key="reason")
"""Messages that only tell how a budget stands, which is nobody's last word."""


def retry_now(run: AgentRun) -> None:
    """End a run's wait for its model (mission B5). One that does not wait, or not any more, is left alone."""
    end_wait(run.thread, run.pk, run.step)


def trust_again(thread: Thread) -> None:
    """Take the mark off a thread, its notes, documents, files and times: its user has looked at what was read, and
    vouches."""
    with transaction.atomic():
        forget_sources(thread.pk)  # first: whoever changes a file locks the workspace before the thread
        Thread.objects.filter(pk__in=threads_below(thread.pk)).update(sources=[])
        Note.objects.filter(thread=thread).update(sources=[])
        Learning.objects.filter(thread=thread).update(sources=[])
        Document.objects.filter(thread=thread).update(sources=[])
        parts.forget_sources(thread.pk)
        import_string(settings.AGENT_VOUCHED)(thread.pk)


def wake(thread: Thread, trigger: Trigger, context_type: str = "") -> UUID:
    """Queue a run without a new message. Returns its id, or the id of the run that is live already.

    Args:
        context_type: selects how the agent's kind builds the prompt (mission A6), see `Agentable.prompt_for`.
    """
    run_id, fresh = journal.wake(thread.pk, new_id(), trigger, context_type)
    if fresh:
        bell.announce_and_ring(thread, run_id)
    return run_id


def archive_now(thread: Thread, reason: ArchiveReason = ArchiveReason.BY_HAND) -> None:
    """Have the live session archived without waiting until it is idle; a worker sums it up.

    Raises:
        Refused: the agent is at work, there is nothing to archive, or no worker could be told.
    """
    if AgentRun.objects.live().filter(thread=thread).exists():
        raise Refused("busy", "The agent is at work; wait until it is done or stop it.")
    if not HistoryEntry.objects.filter(thread=thread, seq__gte=thread.from_seq).exists():
        raise Refused("empty", "Nothing was said since the last session.")
    if not bell.ring_archive(thread.pk, thread.user_id, reason):
        raise Refused("unavailable", "The workers cannot be reached; try again in a moment.")


def assistant_of(user: User) -> UserAgent:
    """The user's assistant, made on first use (accounts are also created by commands and by the admin)."""
    found = UserAgent.objects.filter(user=user).select_related("thread").first()
    if found is not None:
        return found
    try:
        with transaction.atomic():
            return UserAgent.objects.create(user=user, thread=open_thread(user, UserAgent.kind()))
    except IntegrityError:
        return UserAgent.objects.select_related("thread").get(user=user)


def open_thread(user: User, kind: str) -> Thread:
    return Thread.objects.create(user=user, kind=kind)


def _checked(content: str, *, with_files: bool) -> str:
    content = clean(content).strip()
    if not content and not with_files:
        raise Refused("blank", "Write something first.")
    if len(content) > settings.WAYMARK_MESSAGE_LENGTH:
        limit = settings.WAYMARK_MESSAGE_LENGTH
        raise Refused("too_long", f"The message has {len(content):,} characters; at most {limit:,} can be sent.")
    return content


def _sent_before(thread: Thread, client_message_id: UUID | None) -> Accepted | None:
    if client_message_id is None:
        return None
    message = ThreadMessage.objects.filter(thread=thread, client_message_id=client_message_id).first()
    return Accepted(message, message.run_id, created=False) if message else None


def _accepted_before(thread: Thread, client_message_id: UUID | None) -> Accepted:
    """
    Raises:
        Refused: it was not, and cannot be accepted now.
    """
    if before := _sent_before(thread, client_message_id):
        return before
    now = Thread.objects.filter(pk=thread.pk).first()
    if now is None:
        raise Refused("gone", "This conversation does not exist any more.")
    _check_waiting(now)
    raise queue_full()


def _check_waiting(thread: Thread) -> None:
    """
    Raises:
        Refused: no further message is accepted now.
    """
    if 0 < settings.WAYMARK_MAX_WAITING_MESSAGES <= thread.pending:
        raise too_many_waiting()
