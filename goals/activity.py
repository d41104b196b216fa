"""What was done in a person's name, newest first: by whom, why, and the way back (mission D7, D8)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.db.models.functions import TruncDate
from django.utils import timezone

from agents.costs import By, Period, Spending, spent
from agents.live.steps import Step, shown_step
from goals.owners import OWNERS
from memory.keyset import NoCursor
from memory.models import Source, ThreadMessage
from tools import registry
from tools.base import Reversal
from tools.models import NEWEST_FIRST, ActionQuerySet, ActionStatus, AgentAction, agent_of, of_agent
from tools.sought import Sought
from tools.way_back import way_back

SHOWN = 50
COUNTED = 1_000


@dataclass(frozen=True, slots=True)
class Deed:
    """
    step: its sentence, mark and undo, as in the chat.
    because: what its user had written; empty when something else set it off.
    """

    action: AgentAction
    step: Step
    because: str

    @property
    def place(self) -> UUID:
        """The thread of the conversation that it belongs to: a helper's is that of who sent it."""
        return agent_of(self.action.thread)

    @property
    def lasting(self) -> str:
        """Why there is no way back from what was done; empty when there is one, or nothing to take back."""
        action = self.action
        if action.status != ActionStatus.DONE or self.step.undo:
            return ""
        if action.reversal not in (Reversal.IRREVERSIBLE, Reversal.COMPENSABLE):
            return ""
        return way_back(action.reversal, registry.find(action.tool))


@dataclass(frozen=True, slots=True)
class Day:
    """
    deeds: of this page. count: of the whole day, as they were sought; 0 when that would take too long.
    spending: of the whole day, as the page of costs has it; None beside a choice of actions, and when there was none.
    """

    date: date
    deeds: list[Deed]
    count: int
    spending: Spending | None


@dataclass(frozen=True, slots=True)
class Page:
    """
    older: the cursor of the next page; empty on the last one.
    more: how many come after this page, COUNTED at most. 0 with a search for words, which would have to read them all.
    horizon: words were looked for from then on; None: everywhere.
    """

    days: list[Day]
    older: str
    more: int
    horizon: datetime | None


def page(user: User, sought: Sought, within: Q, cursor: str = "", *, with_costs: bool = False) -> Page:
    """Return what is sought of a user's actions, a page of it.

    Args:
        within: Q() or `below` of a conversation.
        cursor: `older` of the page before; one that is none is as good as none.
        with_costs: say what each day has cost.
    """
    mine = AgentAction.objects.for_user(user).filter(within)
    found_all = sought.among(mine)
    rest = _after(found_all, cursor)
    known = rest.with_standing().defer("undo", "output").select_related("approval", *OWNERS)
    found = list(NEWEST_FIRST.sort(known)[: SHOWN + 1])
    shown, goes_on = found[:SHOWN], len(found) > SHOWN
    deeds = {at: list(group) for at, group in groupby(_deeds(shown), _date)}
    counts = _counts(found_all, _period(deeds)) if deeds and not sought.text else {}
    costs = spent(By.DAY, _period(deeds), user) if with_costs and deeds else {}
    days = [Day(at, group, counts.get(at, 0), costs.get((at,))) for at, group in deeds.items()]
    more = rest.order_by()[: SHOWN + COUNTED].count() - SHOWN if goes_on and not sought.text else 0
    return Page(days, NEWEST_FIRST.cursor(shown[-1]) if goes_on else "", more, sought.horizon(mine))


def _period(days: Collection[date]) -> Period:
    """From the first of these days to the last, where the user is."""
    zone = timezone.get_current_timezone()
    first, last = (datetime.combine(day, time(), zone) for day in (min(days), max(days) + timedelta(days=1)))
    return Period(first, last, zone)


def _counts(actions: ActionQuerySet, period: Period) -> dict[date, int]:
    within = actions.filter(created_at__gte=period.since, created_at__lt=period.until).order_by()
    days = within.annotate(day=TruncDate("created_at", tzinfo=period.zone)).values_list("day")
    return dict(days.annotate(n=Count("pk")))


def _after(actions: ActionQuerySet, cursor: str) -> ActionQuerySet:
    try:
        return NEWEST_FIRST.after(actions, cursor) if cursor else actions
    except NoCursor:
        return actions


def below(thread_id: UUID, since: datetime | None = None) -> Q:
    """What was done in a conversation, and by the helpers that it sent off; of that what took effect since a moment."""
    done = of_agent(thread_id)
    return done & Q(finished_at__gte=since) if since else done


def _deeds(actions: Sequence[AgentAction]) -> list[Deed]:
    wrote = _wrote({action.run_id for action in actions if action.run_id})
    return [Deed(action, shown_step(action), wrote.get(action.run_id, "")) for action in actions]


def _wrote(runs: Iterable[UUID]) -> dict[UUID | None, str]:
    said = ThreadMessage.objects.filter(run__in=list(runs), source=Source.USER).exclude(metadata__has_key="decision")
    return dict(said.order_by("run", "position").distinct("run").values_list("run_id", "content"))


def _date(deed: Deed) -> date:
    return timezone.localtime(deed.action.created_at).date()
