"""A session becomes an archive: reserved (D9), summarised by whoever reserved it, finished (D10).

Each step locks the thread first and asks again whether it may: two archivers make one archive, and a crash between
them leaves a reservation that is taken up again when it is due. A session is cut between turns and never while a run
works on it (invariant I13); the run itself may cut it, under its lease. Rows stay; the live session begins at the
thread's `from_seq`.
"""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.db.models.functions import Now

from memory.archived import Entry, Summary, entry_of, searchable
from memory.compaction import cut
from memory.ids import new_id
from memory.models import AgentHistory, AgentRun, ArchiveReason, ArchiveStatus, HistoryEntry, RunStatus, Thread
from memory.places import last_position

# After a failed summary the next try comes this much later, then twice as late, and so on.
FIRST_PAUSE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Holder:
    """The lease of a run that cuts its own session."""

    run_id: UUID
    token: UUID


@dataclass(frozen=True, slots=True)
class Reservation:
    """A session that nobody else archives now. `summary` is there already when it could not be finished before."""

    archive_id: UUID
    token: UUID
    thread_id: UUID
    entries: list[Entry]
    tries: int
    summary: Summary | None = None
    holder: Holder | None = None


class Outcome(StrEnum):
    DONE = "done"
    POSTPONED = "postponed"
    LOST = "lost"


def reserve(
    thread_id: UUID,
    reason: ArchiveReason,
    *,
    seconds: float,
    share: float = 0.0,
    holder: Holder | None = None,
    at_once: bool = False,
) -> Reservation | None:
    """D9: reserve the live session, or all of it but its newest turns. None: there is nothing to archive, a run is
    at work on it, somebody archives it already, or its last failure is not long enough ago.

    Args:
        seconds: after which another may take the reservation up.
        share: how much of the session stays live, see `compaction.cut`.
        holder: the run that asks, which goes before every other archiver.
        at_once: do not wait out the pause after a failure.
    """
    with transaction.atomic():
        thread = _locked(thread_id)
        if thread is None or not _may_cut(thread, holder):
            return None
        archive = AgentHistory.objects.select_for_update().filter(thread=thread, generation=thread.generation).first()
        if archive is not None and not _may_take(archive, holder, at_once=at_once):
            return None
        # What a crashed archiver had reserved is what is archived: messages that came since stay in the live session.
        again = archive is not None and archive.status == ArchiveStatus.RESERVED
        going = _going(thread, archive.last_seq if archive and again and holder is None else None, share)
        if not going:
            return None
        return _reserved(thread, archive, going, reason, seconds, holder)


def finish(reservation: Reservation, summary: Summary) -> Outcome:
    """D10: store the archive and begin the next session, both or neither.

    POSTPONED: a run has begun to work on the session; the summary is kept and used when the reservation is taken up
    again. LOST: the reservation is somebody else's by now, or the thread is gone.
    """
    with transaction.atomic():
        thread = _locked(reservation.thread_id)
        ours = AgentHistory.objects.select_for_update().filter(pk=reservation.archive_id, token=reservation.token)
        archive = ours.filter(status=ArchiveStatus.RESERVED).first()
        if thread is None or archive is None:
            return Outcome.LOST
        archive.summary, archive.model, archive.title = summary.text, summary.model, summary.title
        if not _may_cut(thread, reservation.holder):
            archive.due_at = Now()
            archive.save(update_fields=["summary", "model", "title", "due_at"])
            return Outcome.LOST if reservation.holder else Outcome.POSTPONED
        _fill(archive, _going(thread, archive.last_seq, 0))
        archive.save()
        following = {"generation": F("generation") + 1, "from_seq": archive.last_seq + 1, "told": {}}
        Thread.objects.filter(pk=thread.pk).update(**following)
        return Outcome.DONE


def fail(reservation: Reservation, error: str) -> None:
    """The summary could not be made: the history stays as it is, and the next try waits (case CON-03 b to d)."""
    ours = AgentHistory.objects.filter(pk=reservation.archive_id, token=reservation.token)
    ours.filter(status=ArchiveStatus.RESERVED).update(
        status=ArchiveStatus.FAILED,
        error=error,
        tries=F("tries") + 1,
        due_at=Now() + FIRST_PAUSE * 2**reservation.tries,
    )


def _locked(thread_id: UUID) -> Thread | None:
    """Locked like the journal does it, so that rows read from here on are as new as the lock."""
    return Thread.objects.select_for_update(no_key=True).filter(pk=thread_id).first()


def _may_cut(thread: Thread, holder: Holder | None) -> bool:
    if holder is None:
        return thread.live_run is None
    held = AgentRun.objects.select_for_update(no_key=True).filter(pk=holder.run_id, lease_token=holder.token)
    return held.filter(status__in=(RunStatus.RUNNING, RunStatus.CANCELLING)).exists()


def _may_take(archive: AgentHistory, holder: Holder | None, *, at_once: bool) -> bool:
    if holder is not None or (at_once and archive.status == ArchiveStatus.FAILED):
        return True
    return AgentHistory.objects.filter(pk=archive.pk, due_at__lte=Now()).exists()


def _rows(thread: Thread) -> QuerySet[HistoryEntry]:
    return HistoryEntry.objects.filter(thread=thread, seq__gte=thread.from_seq).order_by("seq")


def _going(thread: Thread, last_seq: int | None, share: float) -> list[Entry]:
    """The entries to archive: up to `last_seq`, or else up to the cut."""
    rows = _rows(thread) if last_seq is None else _rows(thread).filter(seq__lte=last_seq)
    entries = [entry_of(row) for row in rows]
    return entries[: cut([entry.message for entry in entries], 0 if last_seq else share)]


def _reserved(
    thread: Thread,
    archive: AgentHistory | None,
    going: list[Entry],
    reason: ArchiveReason,
    seconds: float,
    holder: Holder | None,
) -> Reservation:
    archive = archive or AgentHistory(thread=thread, generation=thread.generation)
    if archive.last_seq != going[-1].seq:
        archive.summary = archive.model = archive.title = ""
    archive.status, archive.reason, archive.token = ArchiveStatus.RESERVED, reason, new_id()
    archive.first_seq, archive.last_seq = going[0].seq, going[-1].seq
    archive.position = last_position(thread, archive.last_seq)
    archive.due_at = Now() + timedelta(seconds=seconds)
    archive.save()
    kept = Summary(archive.summary, archive.model, archive.title) if archive.summary else None
    return Reservation(archive.pk, archive.token, thread.pk, going, archive.tries, kept, holder)


def _fill(archive: AgentHistory, entries: list[Entry]) -> None:
    runs = AgentRun.objects.filter(pk__in={entry.run for entry in entries})
    used = runs.aggregate(input=Sum("input_tokens"), output=Sum("output_tokens"))
    archive.status, archive.due_at, archive.token, archive.error = ArchiveStatus.DONE, None, None, ""
    archive.entries = [entry.model_dump(mode="json") for entry in entries]
    archive.text = searchable(entries)
    archive.message_count = len(entries)
    archive.input_tokens, archive.output_tokens = used["input"] or 0, used["output"] or 0
    archive.started_at, archive.ended_at = entries[0].at, entries[-1].at
