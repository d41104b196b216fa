"""Where an entry of the history stands in the thread that the user sees, and which of its messages wait for them."""

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Max, Q

from memory.models import HistoryEntry, Source, Thread, ThreadMessage

TAKEN = Q(source=Source.USER) | Q(metadata__has_any_keys=["task", "schedule"])
"""Messages that an agent is told: of its user, its helpers and the clock. A run makes one entry of each that it takes
up, in the same order."""


def last_position(thread: Thread, seq: int) -> int | None:
    """The position of the last message that belongs to the entries up to `seq`, which ends a turn.

    None when it cannot be told, because the run that goes on from there is gone.
    """
    messages = ThreadMessage.objects.filter(thread=thread, processed=True)
    following = HistoryEntry.objects.filter(thread=thread, seq__gt=seq).order_by("seq").first()
    if following is None:
        last: int | None = messages.aggregate(last=Max("position"))["last"]
        return last
    if following.run_id is None:
        return None
    of_run = HistoryEntry.objects.filter(thread=thread, run=following.run_id, role="user")
    nth = of_run.filter(seq__lt=following.seq).count()
    taken = messages.filter(TAKEN, run=following.run_id).order_by("position")
    first_kept = taken.values_list("position", flat=True)[nth : nth + 1].first()
    return None if first_kept is None else first_kept - 1


def still_asking(messages: Iterable[ThreadMessage]) -> set[UUID]:
    """Those of some messages that are questions without an answer; when none is a question, without a query."""
    asking = [message.pk for message in messages if "asks" in message.metadata]
    return set(ThreadMessage.objects.unanswered().filter(pk__in=asking).values_list("pk", flat=True))
