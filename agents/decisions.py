"""What people decide about single calls: approve or reject one (mission D9), say what became of one.

A state is left once: whoever comes second is told. What a decision sets off belongs to a run: the one that waits, or
the next one, which takes the decision like a message.
"""

import contextlib
from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models.functions import Now

from agents.engine import bell
from agents.engine.crashpoints import crashpoint
from agents.live.announce import announce_action
from agents.live.steps import intention
from agents.locked_call import LockedCall, locked
from agents.proposed_call import ProposedCall
from agents.refusals import Refused
from memory.marks import mark
from memory.messages import ToolUse
from memory.models import STOPPED, Thread
from memory.news import tell
from memory.pool import orm_connection
from memory.text import clean
from tools import registry, trust
from tools.attempts import Result
from tools.base import Effect, ToolContext
from tools.cancel import CancelToken
from tools.executor import validated
from tools.models import OPEN, ActionStatus, AgentAction, Approval, ApprovalState, Resolution, agent_of
from tools.probing import look_up
from tools.signature import digest

SETTLED = {
    ApprovalState.APPROVED: "This was approved already.",
    ApprovalState.REJECTED: "This was rejected already.",
    ApprovalState.EXPIRED: "This has expired; nothing was done.",
    ApprovalState.CANCELLED: "This was withdrawn; nothing was done.",
}


REJECTED = "You rejected a call."
EDITED = "The user has changed it, and what they made of it runs in its place."


def decide(
    action: AgentAction,
    user: User,
    state: ApprovalState,
    shown: str,
    reason: str = "",
    always: trust.Scope | None = None,
) -> Approval:
    """Approve or reject a call that waits. The same decision twice is the same as once. A rejection ends what the user
    had allowed its tool for this agent (mission H6).

    Args:
        action: from the user's own door, with an approval.
        state: APPROVED or REJECTED.
        shown: what the user has seen (`ProposedCall.shown`).
        reason: for the model; cut where nobody reads on.
        always: what the user allows from now on, when they approve.

    Raises:
        Refused: it was decided otherwise, is over, has expired, is not what was shown, or may not be allowed for good.
    """
    crashpoint("decision.before")
    with locked(action) as call:
        approval = Approval.objects.select_for_update().get(pk=action.pk)
        if approval.reason == EDITED:
            raise Refused("decided", "You changed this already; what you made of it runs.")
        if approval.state != state:
            _check(call, approval, shown)
            approval.seen = shown if state is ApprovalState.APPROVED else ""
            if always is not None and state is ApprovalState.APPROVED:
                _allow(call, approval, user, always)
            call.settle_approval(approval, state, user, clean(reason).strip()[:500])
            if state is ApprovalState.REJECTED:
                trust.revoke(action.thread_id, action.tool, REJECTED)
    crashpoint("decision.after")
    return approval


def edit(action: AgentAction, user: User, shown: str, arguments: dict[str, Any]) -> None:
    """Let a call run otherwise than its agent proposed it: that one is closed, and the user's runs in its place.

    Args:
        action, shown: as for `decide`.
        arguments: all of the call's, as the user wants them.

    Raises:
        Refused: as `decide`, or the tool does not take these arguments.
    """
    use = ToolUse(id=action.call_id, name=action.tool, arguments=arguments)
    if problem := validated(registry.tools_of(user.pk), use, action.position, action.pk).problem:
        raise Refused("invalid", problem)
    if digest(action.tool, arguments) == digest(action.tool, action.arguments):
        decide(action, user, ApprovalState.APPROVED, shown)
        return
    with locked(action) as call:
        approval = Approval.objects.select_for_update().get(pk=action.pk)
        _check(call, approval, shown)
        call.settle_approval(approval, ApprovalState.REJECTED, user, EDITED)
        call.run_instead(user, arguments)


def _allow(call: LockedCall, approval: Approval, user: User, scope: trust.Scope) -> None:
    if scope not in trust.Earned(user.pk).scopes(approval):
        raise Refused("not_earned", "This cannot be allowed from now on.")
    thread = Thread.objects.get(pk=agent_of(call.thread))
    trust.grant(user, thread, call.action.tool, call.action.arguments if scope is trust.Scope.THESE else None)


def expire_due() -> int:
    """Close what nobody has decided in time, or nobody could carry out; returns how many there were."""
    due = AgentAction.objects.filter(approval__state=ApprovalState.REQUESTED, approval__expires_at__lte=Now())[:100]
    for action in due:
        _close(action, ApprovalState.EXPIRED, "")
    approved = {"approval__state": ApprovalState.APPROVED, "approval__expires_at__lte": Now()}
    late = AgentAction.objects.filter(status=ActionStatus.PROPOSED, **approved)[:100]
    for action in late:
        with locked(action) as call:
            if call.action.status == ActionStatus.PROPOSED:
                call.give_up()
    return len(due) + len(late)


def withdraw(proposed: Iterable[AgentAction], reason: str) -> None:
    """Close proposals because what they belong to is put away; a live run's own calls end with it. Takes part in an
    open transaction, or closes each in one of its own.

    Args:
        reason: a sentence, for the agent and its user.
    """
    for action in proposed:
        _close(action, ApprovalState.CANCELLED, reason)


def resolve(action: AgentAction, user: User, resolution: Resolution) -> None:
    """Say of a call with an unknown outcome that it happened, have it looked up, or have it run again.

    Args:
        action: from the user's own door.

    Raises:
        Refused: its outcome is known by now, or it cannot be looked up.
    """
    match resolution:
        case Resolution.HAPPENED:
            _happened(action, user)
        case Resolution.RUN_AGAIN:
            with locked(action) as call:
                call.settle_unknown(user.pk, resolution)
                call.run_again(user)
        case Resolution.CHECKED:
            _have_checked(action, user)


def check(action_id: UUID, user_id: int | None) -> None:
    """Look up what became of a call with an unknown outcome, and tell user and agent. A job: it may take a while, and
    what was settled meanwhile stays so.

    Args:
        user_id: who asks; None: nobody, so the agent is not woken for it.
    """
    action = AgentAction.objects.select_related("thread").filter(pk=action_id, status=ActionStatus.UNKNOWN).first()
    if action is None:
        return
    result = _look_up(action)
    if result is not None and result.status is ActionStatus.UNKNOWN:
        AgentAction.objects.filter(pk=action_id, status=ActionStatus.UNKNOWN).update(error=result.observation)
        announce_action(action.thread, action.pk)
        return
    with contextlib.suppress(Refused), locked(action) as call:
        call.settle_unknown(user_id, Resolution.CHECKED)
        tell_agent = call.tell_agent if user_id is not None else partial(tell, action.thread_id)
        if result is None:
            _become(action, ActionStatus.ERROR, error="It was looked up: this did not happen.")
            tell_agent(f"It was looked up and did not happen: {intention(call.action)}")
        else:
            undo = result.undo.model_dump(mode="json") if result.undo else None
            _become(action, ActionStatus.DONE, error="", output=result.observation, summary=result.summary, undo=undo)
            mark(action.thread_id, result.sources, orm_connection())
            tell_agent(f"It was looked up and did happen, do not repeat it: {intention(call.action)}")


def _close(action: AgentAction, state: ApprovalState, reason: str) -> None:
    """End the wait of a call without anybody's word, unless it was decided meanwhile."""
    with locked(action) as call:
        approval = Approval.objects.select_for_update().get(pk=action.pk)
        if approval.state == ApprovalState.REQUESTED:
            call.settle_approval(approval, state, None, reason)


def _check(call: LockedCall, approval: Approval, shown: str) -> None:
    if approval.state != ApprovalState.REQUESTED:
        raise Refused("decided", SETTLED[ApprovalState(approval.state)])
    if call.action.status not in (*OPEN, ActionStatus.PROPOSED) or call.run.status in STOPPED:
        raise Refused("closed", SETTLED[ApprovalState.CANCELLED])
    if Approval.objects.filter(pk=approval.pk, expires_at__lte=Now()).exists():
        raise Refused("expired", SETTLED[ApprovalState.EXPIRED])
    if approval.digest != digest(call.action.tool, call.action.arguments) or shown != ProposedCall(call.action).shown:
        raise Refused("changed", "This is not what you were shown. Look at it again before you decide.")


def _happened(action: AgentAction, user: User) -> None:
    with locked(action) as call:
        call.settle_unknown(user.pk, Resolution.HAPPENED)
        _become(action, ActionStatus.DONE, error="")
        call.tell_agent(f"It happened, do not repeat it: {intention(call.action)}")


def _become(action: AgentAction, status: ActionStatus, **fields: Any) -> None:
    AgentAction.objects.filter(pk=action.pk).update(status=status, **fields)


def _have_checked(action: AgentAction, user: User) -> None:
    if action.status != ActionStatus.UNKNOWN or action.resolution:
        raise Refused("decided", "What became of this is settled already.")
    if action.effect != Effect.VERIFIABLE or registry.find(action.tool, action.user_id) is None:
        raise Refused("not_verifiable", "Nobody can look up what became of this.")
    if not bell.ask_for_check(action.pk, user.pk):
        raise Refused("unavailable", "No worker can be reached at the moment. Try again.")


def _look_up(action: AgentAction) -> Result | None:
    use = ToolUse(id=action.call_id, name=action.tool, arguments=action.arguments)
    attempt = validated(registry.all_tools(), use, action.position, action.pk)
    assert action.run_id is not None  # what a person does has no unknown outcome
    if attempt.problem:
        return attempt.unknown("the tool cannot read this call any more")
    context = partial(ToolContext, action.user_id, action.thread_id, action.run_id, action.pk)
    return look_up(attempt, context, CancelToken())
