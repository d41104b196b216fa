"""What was done in a person's name, newest first: by whom, why, and the way back (mission D7, D8)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q
from django.utils import timezone

from agents.live.steps import Step, shown_step
from goals.jobs import OWNERS
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
    date: date
    deeds: list[Deed]


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


def page(user: User, sought: Sought, within: Q, cursor: str = "") -> Page:
    """Return what is sought of a user's actions, a page of it.

    Args:
        within: Q() or `below` of a conversation.
        cursor: `older` of the page before; one that is none is as good as none.
    """
    mine = AgentAction.objects.for_user(user).filter(within)
    rest = _after(sought.among(mine), cursor)
    known = rest.with_standing().defer("undo", "output").select_related("approval", *OWNERS)
    found = list(NEWEST_FIRST.sort(known)[: SHOWN + 1])
    shown, goes_on = found[:SHOWN], len(found) > SHOWN
    days = [Day(at, list(group)) for at, group in groupby(_deeds(shown), _date)]
    more = rest.order_by()[: SHOWN + COUNTED].count() - SHOWN if goes_on and not sought.text else 0
    return Page(days, NEWEST_FIRST.cursor(shown[-1]) if goes_on else "", more, sought.horizon(mine))


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
