"""What has happened to a user's agents since a moment: for "since you last looked", for devices, and for the feed
(missions H11 and A13).

Nothing falls between two looks. Each ends at a moment before which everything is committed (`horizon`), and the next
one begins there. What was committed about then may be told twice; its id says so.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import chain
from typing import Final, Literal
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q
from django.urls import reverse

from agents.live.cards import target
from agents.live.steps import intention, sentence
from agents.services import NOTICE
from goals.headline import headline
from goals.inbox import outcome
from goals.owners import OUR_KINDS, OWNERS, with_actions
from memory.models import AgentRun, MessageQuerySet, MessageType, Source, Thread, ThreadMessage
from memory.places import still_asking
from memory.text import clip
from tools import registry
from tools.base import Effect
from tools.models import UNRESOLVED, ActionStatus, AgentAction, Approval, ApprovalState, agent_of

MOST: Final = 100
"""Of each kind. There is a page for all of each."""

LENGTH: Final = 200

HORIZON: Final = """
SELECT least(clock_timestamp(), min(xact_start)) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
  AND (backend_xid IS NOT NULL OR state = 'active' AND query_start > clock_timestamp() - interval '1 minute')
"""

_ASIDE: Final = ["interim", "thinking", "schedule", "decision", "attempt", "feed"]
"""Messages with these are no answers: steps on the way, and what others have told the agent."""


class Kind(StrEnum):
    """ASKED: something waits for the user's word. DECIDED: by the user, elsewhere, or by nobody in time."""

    ASKED = "asked"
    DECIDED = "decided"
    FAILURE = "failure"
    ANSWER = "answer"
    REPORT = "report"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class Update:
    """
    id: of a message or an action. thread: of the conversation that it belongs to. said: in a line. text: more of it,
    plain. evidence: the address of the page that shows it. of: what `id` is the id of.
    """

    kind: Kind
    id: UUID
    thread: UUID
    at: datetime
    said: str
    text: str
    evidence: str
    of: Literal["message", "action"]


def horizon() -> datetime:
    """A moment before which everything is committed that bears an earlier time: PostgreSQL's clock, or the beginning of
    the oldest transaction that may still write. A statement that has waited for longer than a minute before its
    transaction wrote anything is not seen."""
    with connection.cursor() as cursor:
        cursor.execute(HORIZON)
        (moment,) = cursor.fetchone() or (None,)
    assert isinstance(moment, datetime)
    return moment


def conversations(user: User) -> set[UUID]:
    """The threads of the user's assistant, of all goals that are not put away, and of agents of other kinds."""
    current = Q(agents_useragent__isnull=False) | Q(goals_goal__isnull=False, goals_goal__archived_at=None)
    others = ~Q(kind__in=OUR_KINDS)
    return set(Thread.objects.for_user(user).filter(current | others).values_list("pk", flat=True))


def updates(user: User, since: datetime, threads: Collection[UUID]) -> list[Update]:
    """Return what has happened in conversations since a moment, the newest first and at most MOST of each kind.

    Args:
        threads: of the conversations; what their helpers did is theirs.
    """
    found = chain(_said(threads, since), _done(user, since), _asked(user, since), _decided(user, since))
    mine = (update for update in found if update.thread in threads)
    return sorted(mine, key=lambda update: (update.at, update.id), reverse=True)


def answers() -> MessageQuerySet:
    """What agents have said to their users."""
    return _words().exclude(source=Source.ERROR).exclude(metadata__has_key="task")


def _words() -> MessageQuerySet:
    words = ThreadMessage.objects.filter(message_type=MessageType.TEXT).exclude(source=Source.USER)
    return words.exclude(metadata__has_any_keys=_ASIDE).exclude(NOTICE)


def _said(threads: Collection[UUID], since: datetime) -> Iterator[Update]:
    """By agents, and by what went wrong. Found by their runs, which are few: messages have no index by time."""
    recent = Q(created_at__gte=since) | Q(finished_at__gte=since) | Q(finished_at=None)
    runs = AgentRun.objects.filter(recent, thread__in=threads)
    words = _words().filter(run__in=runs, created_at__gte=since)
    newest = list(words.order_by("-created_at")[:MOST])
    asking = still_asking(newest)
    for message in newest:
        report = message.metadata.get("task_title", "") if "task" in message.metadata else None
        kind = Kind.FAILURE if message.source == Source.ERROR else Kind.ANSWER if report is None else Kind.REPORT
        kind = Kind.ASKED if message.pk in asking else kind
        title, text = headline(message.content)
        if report:
            title, text = report, f"{title}. {text}".strip()
        at = reverse("message", args=[message.pk])
        yield Update(kind, message.pk, message.thread_id, message.created_at, title, text, at, "message")


def _done(user: User, since: datetime) -> Iterator[Update]:
    """By agents: what has changed something. A call may have waited for its approval before."""
    done = AgentAction.objects.for_user(user).filter(
        status=ActionStatus.DONE,
        undone=False,
        run__isnull=False,
        finished_at__gte=since,
        created_at__gte=_asked_at(since),
    )
    speaking = [tool.name for tool in registry.all_tools().values() if tool.speaks]
    quiet = done.exclude(effect=Effect.PURE).exclude(undo__isnull=True, effect=Effect.LOCAL).exclude(tool__in=speaking)
    changing = quiet.defer("undo", "output")
    for action in changing.select_related(*OWNERS).order_by("-finished_at")[:MOST]:
        assert action.finished_at is not None
        yield _of_action(Kind.CHANGE, action, action.finished_at, f"{sentence(action)[0]} {action.summary}".strip())


def _asked(user: User, since: datetime) -> Iterator[Update]:
    asked = Approval.objects.for_user(user).waiting().filter(requested_at__gte=since)
    for approval in with_actions(asked).order_by("-requested_at")[:MOST]:
        yield _of_action(
            Kind.ASKED, approval.action, approval.requested_at, intention(approval.action, target(approval.action))
        )
    unknown = AgentAction.objects.for_user(user).filter(UNRESOLVED, finished_at__gte=since)
    for action in unknown.select_related(*OWNERS).order_by("-finished_at")[:MOST]:
        assert action.finished_at is not None
        yield _of_action(Kind.ASKED, action, action.finished_at, f"{sentence(action)[0]} {intention(action)}")


def _decided(user: User, since: datetime) -> Iterator[Update]:
    closed = Approval.objects.for_user(user).filter(decided_at__gte=since, requested_at__gte=_asked_at(since))
    open_ones = (ApprovalState.REQUESTED, ApprovalState.CANCELLED)
    for approval in with_actions(closed.exclude(state__in=open_ones)).order_by("-decided_at")[:MOST]:
        assert approval.decided_at is not None
        said = f"{intention(approval.action, target(approval.action))}: {outcome(approval)[1]}"
        yield _of_action(Kind.DECIDED, approval.action, approval.decided_at, said)


def _asked_at(since: datetime) -> datetime:
    """What was decided since a moment was asked for after this one; by which the indexes find it."""
    return since - timedelta(days=settings.WAYMARK_APPROVAL_DAYS + 1)


def _of_action(kind: Kind, action: AgentAction, at: datetime, said: str) -> Update:
    evidence = reverse("action", args=[action.pk])
    return Update(kind, action.pk, agent_of(action.thread), at, clip(said, LENGTH), "", evidence, "action")
