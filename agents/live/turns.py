"""Rows of a thread as turns: what a person asked, what the agent did about it, and what it answered.

A turn starts with a user's message, a helper's report, or a check-in that was due. Messages that wait while a run is
busy are no turns yet: the run takes them up at its next step and they get their place then.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone

from agents.models import CallStatus, ModelCall, ModelConnection
from agents.providers.catalog import kind_of
from agents.providers.known_models import known
from memory.metadata import MessageMetadata
from memory.models import (
    LIVE,
    WAITS,
    AgentHistory,
    AgentRun,
    MessageType,
    RunStatus,
    Source,
    Thread,
    ThreadMessage,
)
from memory.places import TAKEN, still_asking
from tools.models import AgentAction

SHOWN: Final = 12
BUSY: Final = tuple(status for status in LIVE if status != RunStatus.QUEUED)

# Also those whose run has ended while the next one, which is to take them up, has not begun: until then they stand
# before its predecessor's answer and not behind it.
_waits = Q(processed=False) & (Q(run__status__in=BUSY) | ~Q(run__status__in=LIVE) & Q(thread__live_run__isnull=False))


@dataclass(frozen=True, slots=True)
class Part:
    """A message with what it points to. answers: those that may still be picked, of a question."""

    message: ThreadMessage
    metadata: MessageMetadata
    action: AgentAction | None = None
    answers: Sequence[str] = ()

    @property
    def is_step(self) -> bool:
        """Whether it stands on the trail; the rest are answers and errors."""
        quiet = self.metadata.interim or self.is_report or self.is_check_in or (self.tells_of_wait and not self.waits)
        return self.message.message_type == MessageType.TOOL or quiet

    @property
    def tells_of_wait(self) -> bool:
        return self.metadata.attempt is not None or self.metadata.reason == "budget"

    @property
    def waits(self) -> bool:
        """Whether its run waits for the model, or for money, right now."""
        run = self.message.run
        return self.tells_of_wait and run is not None and run.status in WAITS

    @property
    def is_report(self) -> bool:
        return self.metadata.task is not None

    @property
    def is_check_in(self) -> bool:
        return self.metadata.schedule is not None

    @property
    def has_picture(self) -> bool:
        return any(each.width for each in self.metadata.attachments)


@dataclass(frozen=True, slots=True)
class Answerer:
    """The model that gave a run's last answer."""

    kind: str
    model: str


@dataclass(slots=True)
class Turn:
    """`id` is that of its first message. `day` is set on the first turn of a day, in the user's zone. `sessions` are
    those that ended with it. `models` are those that answered, by run; `unseen_by` is the one that was not shown the
    pictures of what was asked."""

    id: UUID
    ask: Part | None
    day: date | None = None
    parts: list[Part] = field(default_factory=list)
    runs: dict[UUID, AgentRun] = field(default_factory=dict)
    models: dict[UUID, Answerer] = field(default_factory=dict)
    unseen_by: str = ""
    live: AgentRun | None = None
    sessions: list[AgentHistory] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Page:
    """Turns in order. `older` is the turn before which there is more; None when this is the beginning."""

    turns: list[Turn]
    older: UUID | None


def newest(thread: Thread, live: AgentRun | None) -> Page:
    return _page(thread, _messages(thread), live)


def before(thread: Thread, turn_id: UUID) -> Page:
    """The turns that come before this one; none when it is not a turn of the thread."""
    position = ThreadMessage.objects.filter(thread=thread, pk=turn_id).values("position")
    return _page(thread, _messages(thread).filter(position__lt=position), None)


def since(thread: Thread, messages: Q, live: AgentRun | None) -> list[Turn]:
    """The turns from before the first one that holds one of `messages` to the end; only the last when none does.

    The one before may change as well: it held the text on its way as long as the run had no message of its own.
    """
    rows = _messages(thread)
    first = rows.filter(messages).order_by("position").values_list("position", flat=True).first()
    starts = rows.filter(TAKEN) if first is None else rows.filter(TAKEN, position__lt=first)
    start = starts.order_by("-position").values_list("position", flat=True).first()
    return _turns(thread, rows if start is None else rows.filter(position__gte=start), live)


def where_of(run: AgentRun) -> str:
    """The query and fragment that lead to a run's turn from the address of its conversation; empty when it has none."""
    first = _messages(run.thread).filter(run=run).order_by("position").values_list("pk", flat=True).first()
    return where_of_messages([first]).get(first, "") if first else ""


def where_of_messages(ids: Collection[UUID]) -> dict[UUID, str]:
    """The query and fragment that lead to each message's turn from the address of its conversation; empty where it has
    none."""
    starts = ThreadMessage.objects.filter(TAKEN, thread=OuterRef("thread")).exclude(_waits).values("pk")
    later = starts.filter(position__gt=OuterRef("position")).order_by("position")
    places = ThreadMessage.objects.filter(pk__in=ids).annotate(
        turn=Subquery(starts.filter(position__lte=OuterRef("position")).order_by("-position")[:1]),
        next_turn=Subquery(later[:1]),
        is_older=Exists(later[SHOWN - 1 : SHOWN]),
    )
    return {
        pk: f"{f'?before={next_turn}' if is_older else ''}#turn-{turn}" if turn else ""
        for pk, turn, next_turn, is_older in places.values_list("pk", "turn", "next_turn", "is_older")
    }


def waiting(thread: Thread) -> list[ThreadMessage]:
    """Messages that came while a run was busy and that it has not taken up yet."""
    return list(ThreadMessage.objects.filter(_waits, thread=thread).order_by("position"))


def _messages(thread: Thread) -> QuerySet[ThreadMessage]:
    return ThreadMessage.objects.filter(thread=thread).exclude(_waits)


def _page(thread: Thread, rows: QuerySet[ThreadMessage], live: AgentRun | None) -> Page:
    starts = list(rows.filter(TAKEN).order_by("-position").values_list("position", flat=True)[: SHOWN + 1])
    if len(starts) <= SHOWN:
        return Page(_turns(thread, rows, live), None)
    turns = _turns(thread, rows.filter(position__gte=starts[SHOWN - 1]), live)
    return Page(turns, turns[0].id)


def _turns(thread: Thread, rows: QuerySet[ThreadMessage], live: AgentRun | None) -> list[Turn]:
    parts = _parts(rows.select_related("run").order_by("position"))
    turns: list[Turn] = []
    for part in parts:
        if not turns or part.message.source == Source.USER or part.is_report or part.is_check_in:
            asked = part.message.source == Source.USER
            turns.append(Turn(part.message.pk, part if asked else None))
            if asked:
                _note_run(turns[-1], part)
                continue
        turns[-1].parts.append(part)
        _note_run(turns[-1], part)
    if turns:
        turns[-1].live = live
    _mark_days(thread, turns, parts)
    _mark_sessions(thread, turns)
    _mark_models(thread, turns)
    return turns


def _mark_models(thread: Thread, turns: Sequence[Turn]) -> None:
    runs = {run_id for turn in turns for run_id, run in turn.runs.items() if not run.is_live}
    if not runs:
        return
    calls = ModelCall.objects.filter(run__in=runs, status=CallStatus.DONE).order_by("run", "-step", "-created_at")
    rows = calls.distinct("run").values_list("run", "provider", "model")
    found: dict[UUID | None, Answerer] = {
        run: Answerer(kind, model) for run, kind, model in rows if not kind_of(kind).is_scripted
    }
    shown = {turn.id: found[run] for turn in turns if (run := _shown_pictures(turn)) in found}
    blind = {answerer for answerer in set(shown.values()) if _is_blind(thread, answerer)}
    for turn in turns:
        turn.models = {run: found[run] for run in turn.runs if run in found}
        if (answerer := shown.get(turn.id)) in blind and answerer is not None:
            turn.unseen_by = answerer.model


def _shown_pictures(turn: Turn) -> UUID | None:
    """The run that was asked with pictures, if there were any."""
    return turn.ask.message.run_id if turn.ask and turn.ask.has_picture else None


def _is_blind(thread: Thread, answerer: Answerer) -> bool:
    """Whether it is known that a model sees no pictures."""
    kind, model = answerer.kind, answerer.model
    mine = ModelConnection.objects.filter(user=thread.user_id, kind=kind, model=model)
    can = [connection.capabilities for connection in mine] or [known(kind, model)]
    return all(each.images is False for each in can)


def _note_run(turn: Turn, part: Part) -> None:
    if part.message.run is not None:
        turn.runs[part.message.run.pk] = part.message.run


def _parts(rows: Iterable[ThreadMessage]) -> list[Part]:
    read = [(message, MessageMetadata.model_validate(message.metadata)) for message in rows]
    wanted = [metadata.action for _, metadata in read if metadata.action]
    shown = AgentAction.objects.with_standing().defer("output", "undo").select_related("approval")
    actions = shown.in_bulk(wanted) if wanted else {}
    asking = still_asking(message for message, _ in read)
    return [
        Part(message, metadata, actions.get(metadata.action), (metadata.asks or ()) if message.pk in asking else ())
        for message, metadata in read
    ]


def _mark_sessions(thread: Thread, turns: Sequence[Turn]) -> None:
    """An archived session ends with the last turn that begins at or before its last message."""
    if not turns or not thread.generation:
        return
    starts = [_first(turn).position for turn in turns]
    ended = AgentHistory.objects.done().filter(thread=thread, position__gte=starts[0])
    for session in ended.only("id", "position", "title", "summary", "ended_at").order_by("generation"):
        turns[bisect_right(starts, session.position or 0) - 1].sessions.append(session)


def _first(turn: Turn) -> ThreadMessage:
    return (turn.ask or turn.parts[0]).message


def _mark_days(thread: Thread, turns: Sequence[Turn], parts: Sequence[Part]) -> None:
    """A turn names its day when the message before it in the thread is from another day."""
    if not turns:
        return
    earlier = ThreadMessage.objects.filter(thread=thread, position__lt=parts[0].message.position)
    last = earlier.order_by("-position").values_list("created_at", flat=True).first()
    previous = timezone.localdate(last) if last else None
    for turn in turns:
        day = timezone.localdate(_first(turn).created_at)
        turn.day = day if day != previous else None
        previous = day
