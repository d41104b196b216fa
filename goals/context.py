"""What the frame of every page shows: goals and their state, what this month cost, whether the demo answers."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import SimpleLazyObject

from agents.agentable import Agentable
from agents.budgets.services import current, monthly_budget
from agents.connections import uses_demo
from agents.costs import beside_runs
from agents.models import UserAgent
from agents.services import assistant_of
from goals.models import Blaze, Goal
from goals.owners import OUR_KINDS, owner_of
from memory.models import LIVE, AgentRun, RunStatus, Thread
from tools.models import AgentAction, asked_of

SHOWN = 40
THEMES = set(UserAgent.Theme.values)
_NEEDS_YOU = (RunStatus.FAILED, RunStatus.WAITING_APPROVAL, RunStatus.WAITING_BUDGET)


@dataclass(frozen=True, slots=True)
class Place:
    """One agent in the sidebar. `state` is a blaze's: working, waiting (for the person) or empty. asked: how many
    of its calls, and of its helpers', wait for the person's word."""

    id: UUID
    thread: UUID
    title: str
    blaze: str
    state: str
    url: str
    asked: int = 0


@dataclass(frozen=True, slots=True)
class Shell:
    assistant: Place
    goals: list[Place]
    working: int
    asked: int
    month: str
    spent: Decimal
    spent_known: bool
    limit: Decimal | None
    demo: bool

    @property
    def used(self) -> int:
        """Percent of the limit; beyond it all of it."""
        return min(100, round(100 * self.spent / self.limit)) if self.limit else 100

    def places(self) -> dict[UUID, Place]:
        """Every agent of the frame by its thread."""
        return {place.thread: place for place in (self.assistant, *self.goals)}


def shell(request: HttpRequest) -> dict[str, object]:
    """Context processor. The database is asked only by pages that draw the frame, always with the same few queries."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"theme": theme_of(request)}
    return {"theme": theme_of(request), "shell": SimpleLazyObject(lambda: build(user))}


def theme_of(request: HttpRequest) -> str:
    """The cookie decides, so that a page never flashes in the other theme."""
    chosen = request.COOKIES.get("theme", "")
    return chosen if chosen in THEMES else UserAgent.Theme.SYSTEM


def build(user: User) -> Shell:
    assistant = assistant_of(user)
    runs = AgentRun.objects.for_user(user).aggregate(
        spent=Sum("cost", filter=Q(created_at__gte=month_start())),
        unknown=Count("pk", filter=Q(created_at__gte=month_start(), cost_known=False)),
        working=Count("pk", filter=Q(status__in=LIVE)),
    )
    beside = beside_runs(user, month_start())
    asked = asked_by_agent(user)
    return Shell(
        assistant=_place(assistant, "you", "", reverse("assistant"), asked[assistant.thread_id]),
        goals=[goal_place(goal, asked[goal.thread_id]) for goal in goals_with_state(user)[:SHOWN]],
        working=runs["working"],
        asked=asked.total(),
        month=date_format(timezone.localtime(), "F"),
        spent=(runs["spent"] or Decimal(0)) + beside.cost,
        spent_known=not runs["unknown"] and beside.known,
        limit=_limit(user),
        demo=uses_demo(user),
    )


def asked_by_agent(user: User) -> Counter[UUID]:
    """How many calls wait for the user's word, by the thread of their agent."""
    calls = AgentAction.objects.filter(pk__in=asked_of(user)).order_by()
    return Counter(calls.values_list(Coalesce("thread__agents_agenttask__parent", "thread"), flat=True))


def _limit(user: User) -> Decimal | None:
    """How many dollars this month may cost."""
    budget = monthly_budget(user)
    if budget is None or budget.money is None:
        return None
    (now,) = current([budget], user)
    return budget.money + now.extra


def places_of(user: User, threads: Collection[UUID]) -> dict[UUID, Place]:
    """Agents by their threads, also of goals that the frame has no room for."""
    places = build(user).places()
    goals = Goal.objects.for_user(user).filter(thread__in=threads).exclude(thread__in=places)
    places |= {goal.thread_id: goal_place(goal) for goal in goals.select_related("thread")}
    return places | {thread: place for thread, place in other_places(user).items() if thread in threads}


def all_places(user: User, shell: Shell) -> dict[UUID, Place]:
    """Agents of the frame and of kinds that others have added, by their threads."""
    return shell.places() | other_places(user)


def other_places(user: User) -> dict[UUID, Place]:
    """Agents of kinds that others have added, by their threads; the frame has no room for them."""
    threads = Thread.objects.for_user(user).exclude(kind__in=OUR_KINDS)
    agents = filter(None, map(owner_of, threads))
    return {
        agent.thread_id: _place(agent, Blaze.CHEVRON, "", agent.address() or reverse("jobs"), 0) for agent in agents
    }


def goals_with_state(user: User) -> QuerySet[Goal]:
    """The user's current goals, each with `last_status`, the status of its newest run."""
    newest = AgentRun.objects.filter(thread=OuterRef("thread")).order_by("-created_at").values("status")[:1]
    goals = Goal.objects.for_user(user).current().select_related("thread")
    return goals.annotate(last_status=Subquery(newest))


def goal_place(goal: Goal, asked: int = 0) -> Place:
    return _place(goal, goal.blaze, getattr(goal, "last_status", None) or "", reverse("goal", args=[goal.pk]), asked)


def _place(agent: Agentable, blaze: str, last_status: str, url: str, asked: int) -> Place:
    working = "working" if agent.thread.live_run else ""
    state = "waiting" if asked or last_status in _NEEDS_YOU else working
    return Place(agent.pk, agent.thread_id, agent.name(), blaze, state, url, asked)


def month_start() -> datetime:
    return timezone.localtime().replace(day=1, hour=0, minute=0, second=0, microsecond=0, fold=0)
