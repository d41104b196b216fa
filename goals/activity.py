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
from memory.models import Source, ThreadMessage
from tools import registry
from tools.base import Effect
from tools.models import ActionQuerySet, AgentAction

SHOWN = 50


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
        task = getattr(self.action.thread, "agents_agenttask", None)
        thread: UUID = task.parent_id if task else self.action.thread_id
        return thread


@dataclass(frozen=True, slots=True)
class Day:
    date: date
    deeds: list[Deed]


def days(user: User, which: Q, before: datetime | None) -> tuple[list[Day], datetime | None]:
    """Return the newest deeds before a moment by day, and the moment before which there are older ones."""
    mine = AgentAction.objects.for_user(user).filter(which).exclude(effect=Effect.PURE).exclude(tool__in=_speaking())
    if before:
        mine = mine.filter(created_at__lt=before)
    older = _end_of_page(mine)
    shown = mine.filter(created_at__gte=older) if older else mine
    known = shown.with_standing().defer("undo", "output").select_related("approval", *OWNERS)
    deeds = _deeds(list(known.order_by("-created_at", "-step", "-position")))
    return [Day(at, list(group)) for at, group in groupby(deeds, _date)], older


def _end_of_page(actions: ActionQuerySet) -> datetime | None:
    """The moment of the last one of a page; None when nothing comes after it. The calls of one reply have the same
    moment, and stay together."""
    moments = actions.order_by("-created_at").values_list("created_at", flat=True)
    last = moments[SHOWN - 1 : SHOWN].first()
    return last if last and moments.filter(created_at__lt=last).exists() else None


def below(thread_id: UUID, since: datetime | None = None) -> Q:
    """What was done in a conversation, and by the helpers that it sent off; of that what took effect since a moment."""
    done = Q(thread=thread_id) | Q(thread__agents_agenttask__parent=thread_id)
    return done & Q(finished_at__gte=since) if since else done


def _speaking() -> list[str]:
    """What only says something stands in the chat."""
    return [name for name, tool in registry.all_tools().items() if tool.speaks]


def _deeds(actions: Sequence[AgentAction]) -> list[Deed]:
    wrote = _wrote({action.run_id for action in actions if action.run_id})
    return [Deed(action, shown_step(action), wrote.get(action.run_id, "")) for action in actions]


def _wrote(runs: Iterable[UUID]) -> dict[UUID | None, str]:
    said = ThreadMessage.objects.filter(run__in=list(runs), source=Source.USER).exclude(metadata__has_key="decision")
    return dict(said.order_by("run", "position").distinct("run").values_list("run_id", "content"))


def _date(deed: Deed) -> date:
    return timezone.localtime(deed.action.created_at).date()
