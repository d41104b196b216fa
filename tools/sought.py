"""Which actions somebody looks for: of what kind, with which tool, by whom, what became of them, when, and with which
words (mission D7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import Q, TextField, Value
from django.db.models.functions import Cast, Concat
from django.db.models.lookups import IContains

from tools import registry
from tools.base import Effect
from tools.models import UNRESOLVED, ActionQuerySet, ActionStatus, ApprovalState, reversible

# How many of the newest actions are looked through for words: each is read as a whole, some 45 µs. An index of words
# would be written with each outcome, within the commit that its run waits for.
LOOKED_THROUGH = 10_000


class Kind(StrEnum):
    """What only says something stands in the chat, and is found by its tool or among everything."""

    CHANGES = "changes"
    READING = "reading"
    EVERYTHING = "everything"


class Who(StrEnum):
    AGENT = "agent"
    PERSON = "person"


class State(StrEnum):
    """How an action stands. WAITING: its user is asked something about it."""

    DONE = "done"
    UNDOABLE = "undoable"
    UNDONE = "undone"
    FAILED = "failed"
    LEFT = "left"
    WAITING = "waiting"
    RUNNING = "running"
    UNKNOWN = "unknown"


_ASKED = Q(status__in=[ActionStatus.INTENT, ActionStatus.PROPOSED], approval__state=ApprovalState.REQUESTED)
_STATES: Mapping[State, Q] = {
    State.DONE: Q(status=ActionStatus.DONE, undone=False),
    State.UNDONE: Q(undone=True),
    State.FAILED: Q(status__in=[ActionStatus.ERROR, ActionStatus.DENIED]),
    State.LEFT: Q(status=ActionStatus.CANCELLED),
    State.WAITING: _ASKED | UNRESOLVED,
    State.RUNNING: Q(status=ActionStatus.STARTED),
    State.UNKNOWN: Q(status=ActionStatus.UNKNOWN),
}
_WHO: Mapping[Who, Q] = {Who.AGENT: Q(run__isnull=False), Who.PERSON: Q(run__isnull=True)}
_BETWEEN = Value("\n")
_TEXTS = Concat(
    *("summary", _BETWEEN, "error", _BETWEEN, "output", _BETWEEN, Cast("arguments", TextField())),
    output_field=TextField(),
)


@dataclass(frozen=True, slots=True)
class Sought:
    """
    text: words that must all occur in what was asked or what came of it.
    tool: by name; then of any kind.
    since, until: when it was asked for, from and before a moment.
    """

    text: str = ""
    tool: str = ""
    who: Who | None = None
    kind: Kind = Kind.CHANGES
    state: State | None = None
    since: datetime | None = None
    until: datetime | None = None

    def among(self, actions: ActionQuerySet) -> ActionQuerySet:
        """Those of these actions that are sought. Words are looked for among the newest, as `horizon` says."""
        found = self._without_words(actions)
        if not self.text:
            return found
        if horizon := self.horizon(actions):
            found = found.filter(created_at__gte=horizon)
        return found.filter(*(IContains(_TEXTS, word) for word in self.text.split()))

    def horizon(self, actions: ActionQuerySet) -> datetime | None:
        """Since when words are looked for; None when there is nothing older."""
        if not self.text:
            return None
        moments = self._without_words(actions).order_by("-created_at").values_list("created_at", flat=True)
        older = moments[LOOKED_THROUGH - 1 : LOOKED_THROUGH + 1]
        return older[0] if len(older) > 1 else None

    def _without_words(self, actions: ActionQuerySet) -> ActionQuerySet:
        found = actions.filter(tool=self.tool) if self.tool else self._of_kind(actions)
        wanted = [_WHO[self.who]] if self.who else []
        if self.state:
            wanted += [reversible() if self.state is State.UNDOABLE else _STATES[self.state]]
        wanted += [Q(created_at__gte=self.since)] if self.since else []
        wanted += [Q(created_at__lt=self.until)] if self.until else []
        return found.filter(*wanted)

    def _of_kind(self, actions: ActionQuerySet) -> ActionQuerySet:
        if self.kind is Kind.EVERYTHING:
            return actions
        quiet = actions.exclude(tool__in=[name for name, tool in registry.all_tools().items() if tool.speaks])
        reading = Q(effect=Effect.PURE)
        return quiet.filter(reading if self.kind is Kind.READING else ~reading)
