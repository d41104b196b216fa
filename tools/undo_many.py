"""Taking back many calls at once: which of them can be, in which order, and what stays (mission D8)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from tools import registry
from tools.base import Effect, Reversal
from tools.changes import Finding
from tools.models import ActionQuerySet, ActionStatus, AgentAction
from tools.undo import Standing, findings, is_possible
from tools.way_back import way_back

MOST_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Batch:
    """
    actions: what may be taken back, in this order; at most MOST_AT_ONCE.
    more: how many come after them, to be taken back once these are.
    lasting: what nobody can take back, the last first; at most MOST_AT_ONCE.
    """

    actions: Sequence[AgentAction]
    more: int
    lasting: Sequence[AgentAction]

    @property
    def seen(self) -> datetime | None:
        """When the last of the actions took effect: what comes after it is not among them."""
        return self.actions[0].finished_at if self.actions else None

    @property
    def reaches(self) -> datetime | None:
        """When the first of the actions took effect, if there are more before it."""
        return self.actions[-1].finished_at if self.more else None


def batch(owner: int, which: Q, until: datetime | None = None) -> Batch:
    """Sort out what some calls of the owner's agents have done. The one that took effect last comes first: one that
    waited for approval may be older than what was done before it. An undo of a call that is among them is left out:
    that call is taken back, or was by it.

    Args:
        until: leave out what took effect later; what is taken back is then what was looked at before.
    """
    mine = AgentAction.objects.filter(which, user_id=owner, run__isnull=False)
    known = mine.filter(finished_at__lte=until) if until else mine
    changed = known.filter(status=ActionStatus.DONE, undone=False, undo__changes__0__isnull=False)
    rest = _last_first(changed.exclude(undoes__in=mine.order_by()).select_related("thread"))
    actions = list(rest[:MOST_AT_ONCE])
    more = rest.order_by().count() - MOST_AT_ONCE if len(actions) == MOST_AT_ONCE else 0
    return Batch(actions, more, list(_last_first(_lasting(known))[:MOST_AT_ONCE]))


def _lasting(actions: ActionQuerySet) -> ActionQuerySet:
    """What was said is none of it: nobody expects that to be taken back."""
    speaking = [name for name, tool in registry.all_tools().items() if tool.speaks]
    for_good = Q(status=ActionStatus.DONE, reversal__in=[Reversal.COMPENSABLE, Reversal.IRREVERSIBLE])
    changes_nothing = Q(undo__isnull=True) | Q(undo__changes=[])
    unknown = Q(status=ActionStatus.UNKNOWN)
    acted = actions.exclude(effect=Effect.PURE).exclude(tool__in=speaking).select_related("thread")
    return acted.filter(for_good & changes_nothing | unknown)


def _last_first(actions: ActionQuerySet) -> ActionQuerySet:
    return actions.order_by("-finished_at", "-step", "-position")


def why_lasting(action: AgentAction) -> str:
    """Why one of `Batch.lasting` stays, as a sentence."""
    if action.status == ActionStatus.UNKNOWN:
        return "It is not known whether it happened."
    return f"{way_back(action.reversal, registry.find(action.tool))}."


def preview(actions: Sequence[AgentAction], owner: int) -> list[list[Finding]]:
    """What would become of each of these, taken back in this order. Changes nothing."""
    standing, found = Standing(owner), []
    for action in actions:
        trial = Standing(owner, seen=dict(standing.seen))
        found.append(findings(action, trial))
        if is_possible(found[-1]):
            standing = trial
    return found
