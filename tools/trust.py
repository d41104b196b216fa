"""Earned autonomy: a person's standing word for one tool of one agent (mission H6).

It is limited in time, never covers what cannot be undone except in exactly one form, and ends with one rejection or
one undo. A run that has read text of strangers asks all the same (`tools.policy`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max, Q, QuerySet, TextChoices
from django.db.models.functions import Coalesce, Now

from memory import pool
from memory.models import Thread
from tools import registry
from tools.attempts import Attempt
from tools.base import Reversal
from tools.models import ActionStatus, Approval, ApprovalState, Cause, Trust, agent_of, of_agent
from tools.signature import digest


class Scope(TextChoices):
    """What a standing word covers: the call with exactly its arguments, or all calls of the tool."""

    THESE = "these"
    ANY = "any"


EARNING = (Cause.RESTRICTED, Cause.CHOSEN)
"""Why a call was asked about that may earn trust."""

IS_TRUSTED = """
SELECT EXISTS (
  SELECT FROM tools_trust WHERE thread_id = %(thread)s AND tool = %(tool)s AND revoked_at IS NULL
    AND until > clock_timestamp() AND digest IN ('', %(digest)s))
"""


def is_trusted(thread_id: UUID, attempt: Attempt) -> bool:
    """Whether a standing word covers a call of a run. thread_id: of the agent that is trusted, see `trusted_as`."""
    call = attempt.call
    parameters = {"thread": thread_id, "tool": call.name, "digest": digest(call.name, call.arguments)}
    return bool(pool.execute(IS_TRUSTED, parameters)[0][0])


def scopes(approval: Approval) -> Sequence[Scope]:
    """What a person may allow from now on when they approve: calls of the same form, and once it is earned all."""
    if approval.cause not in EARNING:
        return ()
    may_be_undone = approval.action.reversal != Reversal.IRREVERSIBLE
    earned = may_be_undone and clean(agent_of(approval.thread), approval.action.tool) >= settings.WAYMARK_TRUST_AFTER
    return (Scope.THESE, Scope.ANY) if earned else (Scope.THESE,)


def clean(thread_id: UUID, tool: str) -> int:
    """How often in a row a call was approved as it was proposed, and neither failed nor was undone, since trust in the
    tool last ended. What strangers may have asked for does not count."""
    asked = Approval.objects.filter(of_agent(thread_id), action__tool=tool)
    spoilt = asked.filter(Q(state=ApprovalState.REJECTED) | Q(action__undone=True)).aggregate(at=Max("decided_at"))[
        "at"
    ]
    ended = Trust.objects.filter(thread=thread_id, tool=tool).aggregate(at=Max("revoked_at"))["at"]
    asked = asked.filter(cause__in=EARNING, state=ApprovalState.APPROVED)
    well = asked.filter(action__status=ActionStatus.DONE, action__undone=False)
    since = max(filter(None, (spoilt, ended)), default=None)
    return (well.filter(decided_at__gt=since) if since else well).count()


def grant(user: User, thread: Thread, tool: str, arguments: dict[str, object] | None) -> Trust:
    """Let calls of a tool run without asking, for so many days. arguments: only with these; None is any."""
    until = Now() + timedelta(days=settings.WAYMARK_TRUST_DAYS)
    only = "" if arguments is None else digest(tool, arguments)
    trust, _made = Trust.objects.update_or_create(
        user=user,
        thread=thread,
        tool=tool,
        digest=only,
        revoked_at=None,
        defaults={"until": until, "arguments": arguments, "granted_at": Now()},
    )
    return trust


def revoke(thread_id: UUID, tool: str, why: str) -> int:
    """End what was allowed for a tool of an agent; returns how many standing words there were.

    Args:
        thread_id: of the agent, or of one of its helpers.
    """
    whose = Q(thread=thread_id) | Q(thread__tasks__thread=thread_id)
    return _end(_standing().filter(whose, tool=tool), why)


def revoke_everywhere(user_id: int, tools: Iterable[str], why: str) -> None:
    """End what was allowed for some tools of a user's agents: they are not what they were."""
    _end(_standing().filter(user=user_id, tool__in=[*tools]), why)


def withdraw(trust: Trust) -> None:
    """Its user takes one standing word back."""
    _end(_standing().filter(pk=trust.pk), "You took it back.")


def standing(user: User) -> QuerySet[Trust]:
    """The words that hold now, the newest first."""
    return _standing().filter(user=user, until__gt=Now()).select_related("thread").order_by("-granted_at")


def _standing() -> QuerySet[Trust]:
    return Trust.objects.filter(revoked_at=None)


def _end(words: QuerySet[Trust], why: str) -> int:
    return words.update(revoked_at=Now(), why_revoked=why)


@dataclass(frozen=True, slots=True)
class Offer:
    """Trust that a person could give. times: in a row approved as proposed, and never undone."""

    thread: Thread
    tool: str
    times: int


def offers(user: User) -> list[Offer]:
    """What has earned it, and was not given yet: of tools whose effect can be undone."""
    asked = Approval.objects.for_user(user).filter(cause__in=EARNING)
    done = asked.filter(state=ApprovalState.APPROVED).exclude(action__reversal=Reversal.IRREVERSIBLE)
    given = {(trust.thread_id, trust.tool) for trust in standing(user) if not trust.digest}
    found = []
    agent = Coalesce("thread__agents_agenttask__parent", "thread")
    for thread_id, tool in done.order_by().values_list(agent, "action__tool").distinct()[:50]:
        if (thread_id, tool) in given or registry.find(tool, user.pk) is None:
            continue
        if (times := clean(thread_id, tool)) >= settings.WAYMARK_TRUST_AFTER:
            found.append(Offer(Thread.objects.get(pk=thread_id), tool, times))
    return found
