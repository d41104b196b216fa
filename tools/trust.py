"""Earned autonomy: a person's standing word for one tool of one agent (mission H6).

It is limited in time, never covers what cannot be undone except in exactly one form, and ends with one rejection or
one undo. A run that has read text of strangers asks all the same (`tools.policy`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q, QuerySet, TextChoices
from django.db.models.functions import Now

from memory import pool
from memory.models import Thread
from tools import registry
from tools.attempts import Attempt
from tools.base import Reversal, Risk
from tools.models import ActionStatus, Approval, ApprovalState, Cause, Trust, agent_of
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
    AND until > clock_timestamp() AND digest = ANY(%(digests)s))
"""


def is_trusted(thread_id: UUID, attempt: Attempt) -> bool:
    """Whether a standing word covers a call of a run: one for all calls of a tool covers none that risks more than they
    usually do, such as writing what steers all agents. thread_id: of the agent that is trusted, see `trusted_as`."""
    call = attempt.call
    these = digest(call.name, call.arguments)
    digests = [these] if attempt.risk is Risk.RESTRICTED and call.name in _harmless() else [these, ""]
    return bool(pool.execute(IS_TRUSTED, {"thread": thread_id, "tool": call.name, "digests": digests})[0][0])


def _harmless() -> list[str]:
    """Tools of which a call asks by itself only as an exception."""
    return [tool.name for tool in registry.all_tools().values() if tool.risk is Risk.ALLOWED]


EARNED = """
SELECT agent, tool, count(*)
FROM (
  SELECT coalesce(task.parent_id, approval.thread_id) AS agent, action.tool, approval.decided_at,
    approval.state = %(approved)s AND approval.cause = ANY(%(earning)s) AND action.status = %(done)s
      AND NOT (approval.cause = %(restricted)s AND action.tool = ANY(%(harmless)s))
      AND NOT action.undone AND action.reversal <> %(for_good)s AS went_well,
    max(approval.decided_at) FILTER (WHERE approval.state = %(rejected)s OR action.undone) OVER same AS spoilt_at
  FROM tools_approval approval
  JOIN agent_actions action ON action.id = approval.action_id
  LEFT JOIN agents_agenttask task ON task.thread_id = approval.thread_id
  WHERE approval.user_id = %(user)s
  WINDOW same AS (PARTITION BY coalesce(task.parent_id, approval.thread_id), action.tool)
) asked
LEFT JOIN (
  SELECT thread_id AS agent, tool, max(revoked_at) AS ended_at FROM tools_trust GROUP BY thread_id, tool
) word USING (agent, tool)
WHERE went_well AND decided_at > greatest(spoilt_at, ended_at, '-infinity')
GROUP BY agent, tool
"""


class Earned:
    """How often in a row calls of a user's agents were approved as they were proposed, and neither failed nor were
    undone, since trust in the tool last ended. What strangers may have asked for does not count, nor what cannot be
    undone. Read once, when it is first asked for."""

    def __init__(self, user_id: int) -> None:
        self._user_id = user_id

    @cached_property
    def times(self) -> dict[tuple[UUID, str], int]:
        """By agent and tool."""
        parameters: dict[str, int | str | list[str]] = {
            "user": self._user_id,
            "approved": ApprovalState.APPROVED.value,
            "rejected": ApprovalState.REJECTED.value,
            "earning": [cause.value for cause in EARNING],
            "done": ActionStatus.DONE.value,
            "for_good": Reversal.IRREVERSIBLE.value,
            "restricted": Cause.RESTRICTED.value,
            "harmless": _harmless(),
        }
        with connection.cursor() as cursor:
            cursor.execute(EARNED, parameters)
            return {(agent, tool): times for agent, tool, times in cursor.fetchall()}

    def scopes(self, approval: Approval) -> Sequence[Scope]:
        """What a person may allow from now on when they approve: calls of the same form, and once it is earned all."""
        if approval.cause not in EARNING:
            return ()
        times = self.times.get((agent_of(approval.thread), approval.action.tool), 0)
        may_be_undone = approval.action.reversal != Reversal.IRREVERSIBLE
        is_usual = approval.cause != Cause.RESTRICTED or approval.action.tool not in _harmless()
        is_earned = may_be_undone and is_usual and times >= settings.WAYMARK_TRUST_AFTER
        return (Scope.THESE, Scope.ANY) if is_earned else (Scope.THESE,)


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
    given = {(trust.thread_id, trust.tool) for trust in standing(user) if not trust.digest}
    enough = {of: times for of, times in Earned(user.pk).times.items() if times >= settings.WAYMARK_TRUST_AFTER}
    open_to = {of: times for of, times in enough.items() if of not in given and registry.find(of[1], user.pk)}
    threads = Thread.objects.in_bulk({thread_id for thread_id, _tool in open_to})
    return [Offer(threads[thread_id], tool, times) for (thread_id, tool), times in open_to.items()]
