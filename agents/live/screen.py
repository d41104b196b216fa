"""Everything of a conversation that changes while one looks on: the bar, the turns, the queue and the side panel."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Count, Q
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from agents.agentable import Agentable, agentable_of
from agents.fairness import is_full
from agents.live import turns
from agents.live.cells import turn_html, with_live
from agents.live.snapshot import Place, place
from agents.models import AgentTask, CallStatus, ModelCall, UserAgent
from agents.plan_item import PlanItem
from agents.planned import Branch, current_plan
from agents.services import assistant_of
from memory.models import AgentRun, Document, Learning, Note, RunStatus, Thread
from tools.filing import newest_of

NOTES_SHOWN: Final = 8
FILES_SHOWN: Final = 6
LEARNINGS_SHOWN: Final = 5
DOCUMENTS_SHOWN: Final = 3
RUNS_SHOWN: Final = 5
TASKS_SHOWN: Final = 8

# What may be said first: to the agent of a goal, and to the assistant, who looks across all of them.
FOR_GOALS: Final = (
    _("Create a note about what I need for a half marathon in May"),
    _("What can you do for me?"),
    _("Look into running shoes for beginners in the background"),
)
FOR_ASSISTANT: Final = (
    _("Look across my goals: what should I do next?"),
    _("What can you do for me?"),
    _("Remember that I like short answers"),
)

_CHIPS: Final = {
    RunStatus.QUEUED: ("", "queued"),
    RunStatus.RUNNING: ("accent", "running"),
    RunStatus.RETRY_WAIT: ("ask", "paused"),
    RunStatus.WAITING_APPROVAL: ("ask", "waiting"),
    RunStatus.WAITING_BUDGET: ("ask", "paused"),
    RunStatus.CANCELLING: ("", "paused"),
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A turn's HTML, still with a slot for the text on its way."""

    id: UUID
    html: str


@dataclass(frozen=True, slots=True)
class Screen:
    """`drawn` are turns in order: the newest ones for a page, those from a certain one on for a change."""

    thread: Thread
    where: Place
    live: AgentRun | None
    drawn: list[Drawn]
    older: UUID | None
    bar: SafeString
    queue: SafeString
    panel: SafeString

    @property
    def text(self) -> str:
        return self.where.text_of(self.live)

    @property
    def turns_html(self) -> list[SafeString]:
        return [with_live(each.html, self.live, self.text) for each in self.drawn]


def whole(thread: Thread) -> Screen:
    """What a page shows at first."""
    where, live = place(thread.pk), _live(thread)
    page = turns.newest(thread, live)
    return _screen(thread, where, live, page.turns, page.older)


def earlier(thread: Thread, turn_id: UUID) -> Screen:
    """The turns before this one, for a page of older ones."""
    page = turns.before(thread, turn_id)
    return _screen(thread, place(thread.pk), None, page.turns, page.older)


def changed(thread: Thread, runs: Collection[UUID], messages: Collection[UUID]) -> Screen:
    """What may look different after something happened to these runs and messages."""
    where, live = place(thread.pk), _live(thread)
    return _screen(thread, where, live, turns.since(thread, Q(run__in=runs) | Q(pk__in=messages), live), None)


def suggestions(thread: Thread) -> Sequence[object]:
    return FOR_ASSISTANT if thread.kind == UserAgent.kind() else FOR_GOALS


def looked_at_again(thread: Thread) -> Thread:
    """A socket keeps its thread for hours, in which sessions of it may have ended."""
    thread.refresh_from_db(fields=["generation"])
    return thread


def in_zone_of(thread: Thread) -> timezone.override:
    """Draw times as the thread's owner reads them; pages do it by middleware, sockets by this."""
    return timezone.override(ZoneInfo(assistant_of(thread.user).time_zone))


def _live(thread: Thread) -> AgentRun | None:
    run = AgentRun.objects.live().filter(thread=thread).first()
    if run is not None:
        run.thread = thread
    return run


def _screen(thread: Thread, where: Place, live: AgentRun | None, shown: list[turns.Turn], older: UUID | None) -> Screen:
    agent = agentable_of(thread)
    return Screen(
        thread=thread,
        where=where,
        live=live,
        drawn=[Drawn(turn.id, turn_html(turn)) for turn in shown],
        older=older,
        bar=bar(agent, live),
        queue=render_to_string("agents/parts/queue.html", {"waiting": turns.waiting(thread)}),
        panel=panel(agent, live),
    )


def bar(agent: Agentable, live: AgentRun | None) -> SafeString:
    tone, mark = _CHIPS[RunStatus(live.status)] if live else ("", "")
    context = {
        "agent": agent,
        "blaze": getattr(agent, "blaze", "you"),
        "run": live,
        "tone": tone,
        "mark": mark,
        "statuses": RunStatus,
        "full": live is not None and live.status == RunStatus.QUEUED and is_full(live.thread.user),
        "asks_again": live is not None and asks_again(live),
    }
    return render_to_string("agents/parts/bar.html", context)


def asks_again(run: AgentRun) -> bool:
    """Whether a run's model call has failed and is repeated under the same lease: it waits for the model's provider."""
    if run.status != RunStatus.RUNNING:
        return False
    calls = ModelCall.objects.filter(run=run, step=run.step).order_by("-id").values_list("status", "attempt")[:2]
    now, *before = calls or [("", 0)]
    return now[0] == CallStatus.STARTED and before == [(CallStatus.FAILED, now[1])]


def panel(agent: Agentable, live: AgentRun | None) -> SafeString:
    thread = agent.thread
    notes = Note.objects.filter(thread=thread)
    tasks = AgentTask.objects.filter(parent=thread)
    learnings = Learning.objects.filter(thread=thread).current()
    runs = AgentRun.objects.filter(thread=thread)
    files, files_count = newest_of(thread, FILES_SHOWN)
    plan = current_plan(thread.pk)
    ahead = agent.ahead()
    steps = [item for branch in plan for item in branch.subtasks]
    context = {
        "agent": agent,
        "thread": thread,
        "files": files,
        "files_count": files_count,
        "plan": plan,
        "plan_now": _under_way(plan) if live else (),
        "plan_mark": _CHIPS[RunStatus(live.status)][1] if live else "",
        "plan_steps": len(steps),
        "plan_closed": sum(not item.is_open for item in steps),
        "beside": agent.beside(),
        "ahead": [each for each in ahead if not each.paused],
        "paused_count": sum(each.paused for each in ahead),
        "notes": notes.defer("body")[:NOTES_SHOWN],
        "notes_count": notes.count(),
        "learnings": learnings.order_by("-number")[:LEARNINGS_SHOWN],
        "learnings_count": learnings.count(),
        "documents": Document.objects.filter(thread=thread).only("name")[:DOCUMENTS_SHOWN],
        "tasks": tasks.defer("instructions", "result").order_by("-created_at")[:TASKS_SHOWN],
        "tasks_count": tasks.count(),
        "runs": [(run, _lasted(run)) for run in runs.order_by("-created_at")[:RUNS_SHOWN]],
        "runs_count": runs.aggregate(n=Count("pk"))["n"],
    }
    return render_to_string("agents/parts/panel.html", context)


def _under_way(plan: Sequence[Branch]) -> Collection[PlanItem]:
    """The step at which the agent is, and its task."""
    return next(((branch.task, item) for branch in plan for item in branch.subtasks if item.is_open), ())


def _lasted(run: AgentRun) -> timedelta | None:
    return run.finished_at - run.started_at if run.finished_at and run.started_at else None
