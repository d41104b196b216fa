"""What waits for a person's word, what they decided lately, and the trust that they could give or have given."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agents.decisions import EDITED
from agents.live.cards import Card, card, target
from agents.live.steps import intention
from goals.context import Place
from goals.owners import OWNERS
from memory.models import Thread
from tools import registry, trust
from tools.models import ActionStatus, AgentAction, Approval, ApprovalState, Trust, agent_of, asked_of
from tools.undo import deed

SHOWN, LATELY = 50, 8


@dataclass(frozen=True, slots=True)
class Question:
    """A call that asks something of its user. words: what it is to do. place: the conversation it belongs to."""

    action: AgentAction
    card: Card
    words: str
    place: Place | None


@dataclass(frozen=True, slots=True)
class Decision:
    """state: a step state of the style sheet. how: what was decided, and why."""

    words: str
    state: str
    how: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Offered:
    """Trust that could be given. tool: as people know it."""

    thread: UUID
    name: str
    tool: str
    place: str
    times: int


@dataclass(frozen=True, slots=True)
class Given:
    """A standing word. exactly: with which arguments; empty when it covers all."""

    trust: Trust
    tool: str
    place: str
    exactly: str


def questions(user: User, places: Mapping[UUID, Place], most: int = SHOWN) -> list[Question]:
    """The oldest first: it expires first."""
    mine = AgentAction.objects.filter(pk__in=asked_of(user)).select_related("approval", *OWNERS)
    earned, found = trust.Earned(user.pk), []
    for action in mine.order_by("created_at")[:most]:
        if asked := card(action, earned):
            place = places.get(agent_of(action.thread))
            found.append(Question(action, asked, intention(action, asked.about), place))
    return found


def lately(user: User) -> list[Decision]:
    """What was decided last, by whomever or by nobody."""
    closed = Approval.objects.for_user(user).exclude(state__in=(ApprovalState.REQUESTED, ApprovalState.CANCELLED))
    newest = closed.filter(decided_at__isnull=False).select_related("action").order_by("-decided_at")[:LATELY]
    return [_decision(approval) for approval in newest]


def offered(user: User, places: dict[UUID, Place]) -> list[Offered]:
    return [
        Offered(offer.thread.pk, offer.tool, tool_name(offer.tool), _title(places, offer.thread), offer.times)
        for offer in trust.offers(user)
    ]


def given(user: User, places: dict[UUID, Place]) -> list[Given]:
    """The standing words that hold now."""
    return [
        Given(each, tool_name(each.tool), _title(places, each.thread), _arguments(each))
        for each in trust.standing(user)
    ]


def tool_name(name: str) -> str:
    """What people call a tool: what it is to do."""
    words = registry.words_of(name)
    return words.deed if words else name


def _arguments(each: Trust) -> str:
    arguments: Iterable[object] = each.arguments.values() if isinstance(each.arguments, dict) else ()
    return ", ".join(str(value) for value in arguments)


def _title(places: dict[UUID, Place], thread: Thread) -> str:
    place = places.get(thread.pk)
    return place.title if place else ""


def outcome(approval: Approval) -> tuple[str, str]:
    """Return (a step state of the style sheet, what was decided and why) of one that is closed."""
    state, how = {
        ApprovalState.APPROVED: ("done", _("approved")),
        ApprovalState.REJECTED: ("failed", _("rejected")),
        ApprovalState.EXPIRED: ("queued", _("expired; nothing was done")),
    }[ApprovalState(approval.state)]
    if approval.reason == EDITED:
        return "done", _("changed by you")
    return state, f"{how}: “{approval.reason}”" if approval.reason else how


def _decision(approval: Approval) -> Decision:
    return Decision(_deed(approval.action), *outcome(approval), approval.decided_at)


def _deed(action: AgentAction) -> str:
    """What was done, or what would have been."""
    return deed(action) if action.status == ActionStatus.DONE else intention(action, target(action))
