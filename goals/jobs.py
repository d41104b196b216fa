"""The user's runs as jobs: what woke an agent, with the helpers that it sent off beneath it, and why anything waits."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.db.models.functions import Left

from agents.models import AgentTask, ModelCall, TaskStatus
from goals.owners import OWNERS
from memory.models import WAITS, AgentRun, Source, ThreadMessage

SHOWN = 50
LONGEST_ABOUT = 400
_ASKS = Q(source=Source.USER) | Q(metadata__has_key="schedule")
_TELLS = Q(metadata__has_key="attempt") | Q(metadata__reason="budget")
TASK_MARKS = {TaskStatus.COMPLETED: "done", TaskStatus.PAUSED: "paused", TaskStatus.CANCELLED: "undone"}


@dataclass(frozen=True, slots=True)
class Helper:
    """A task and its runs, the newest last; one that was resumed has several."""

    task: AgentTask
    runs: list[AgentRun]

    @property
    def run(self) -> AgentRun | None:
        return self.runs[-1] if self.runs else None

    @property
    def ended(self) -> str:
        """The mark of a task that is not under way; empty while it is."""
        return TASK_MARKS.get(TaskStatus(self.task.status), "")


@dataclass(frozen=True, slots=True)
class Job:
    """about: what it was woken for: the words of its user, or of a time that was set; empty for what woke it without.
    wait: what the thread says about a run that waits for its model or its budget. waited: how long it did so before it
    was over."""

    run: AgentRun
    about: str = ""
    wait: ThreadMessage | None = None
    waited: timedelta = timedelta()
    helpers: list[Helper] = field(default_factory=list)

    @property
    def is_under_way(self) -> bool:
        """It works or waits itself, or a helper does, whose report it then takes up."""
        return self.run.is_live or any(not helper.ended for helper in self.helpers)


def jobs(user: User, before: datetime | None = None) -> tuple[list[Job], bool]:
    """Return the newest jobs before a moment, and whether there are older ones. A helper belongs to the job that sent
    it off, whenever it ran; one whose sender is gone is a job of its own."""
    runs = AgentRun.objects.for_user(user).exclude(thread__agents_agenttask__sent_by__isnull=False)
    if before:
        runs = runs.filter(created_at__lt=before)
    page = list(runs.select_related(*OWNERS).order_by("-created_at")[: SHOWN + 1])
    shown = page[:SHOWN]
    about, helpers, waits, waited = _about(shown), _helpers(user, shown), _waits(shown), _waited(shown)
    found = [
        Job(run, about.get(run.pk, ""), waits.get(run.pk), waited.get(run.pk, timedelta()), helpers.get(run.pk, []))
        for run in shown
    ]
    return found, len(page) > SHOWN


def _about(runs: Sequence[AgentRun]) -> dict[UUID | None, str]:
    """The first words that a run was to answer."""
    asked = ThreadMessage.objects.filter(_ASKS, run__in=runs).exclude(content="")
    first = asked.order_by("run_id", "created_at").distinct("run_id")
    return dict(first.values_list("run_id", Left("content", LONGEST_ABOUT)))


def _helpers(user: User, senders: Iterable[AgentRun]) -> dict[UUID | None, list[Helper]]:
    tasks: QuerySet[AgentTask] = AgentTask.objects.for_user(user).filter(sent_by__in=list(senders))
    sent = list(tasks.defer("instructions").order_by("created_at"))
    runs: dict[UUID, list[AgentRun]] = defaultdict(list)
    for run in AgentRun.objects.filter(thread__in=[task.thread_id for task in sent]).order_by("created_at"):
        runs[run.thread_id].append(run)
    helpers: dict[UUID | None, list[Helper]] = defaultdict(list)
    for task in sent:
        helpers[task.sent_by_id].append(Helper(task, runs[task.thread_id]))
    return helpers


def _waits(runs: Sequence[AgentRun]) -> dict[UUID | None, ThreadMessage]:
    waiting = [run.pk for run in runs if run.status in WAITS]
    said = ThreadMessage.objects.filter(_TELLS, run__in=waiting) if waiting else ()
    return {message.run_id: message for message in said}


def _waited(runs: Sequence[AgentRun]) -> dict[UUID | None, timedelta]:
    """How long those that are over have waited: from each word about it until the model was asked next."""
    over = {run.pk: run.finished_at for run in runs if run.started_at and run.finished_at}
    said = ThreadMessage.objects.filter(_TELLS, run__in=over).order_by("created_at").values_list("run_id", "created_at")
    begun: dict[UUID, list[datetime]] = defaultdict(list)
    for run_id, moment in said:
        begun[run_id].append(moment)
    asked: dict[UUID, list[datetime]] = defaultdict(list)
    calls = ModelCall.objects.filter(run__in=begun).order_by("created_at").values_list("run_id", "created_at")
    for run_id, moment in calls if begun else ():
        asked[run_id].append(moment)
    return {run_id: _pauses(moments, [*asked[run_id], over[run_id]]) for run_id, moments in begun.items()}


def _pauses(begun: Sequence[datetime], ends: Sequence[datetime]) -> timedelta:
    """Together; words that nothing lies between are of the same wait."""
    together, until = timedelta(), begun[0]
    for moment in begun:
        if moment >= until:
            until = next((end for end in ends if end > moment), moment)
            together += until - moment
    return together
