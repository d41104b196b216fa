"""A recorded call under its locks (thread, run, action), and what a decision about it changes and sets off."""

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max
from django.db.models.functions import Now

from agents.engine import bell
from agents.engine.posting import post
from agents.live.announce import announce_action
from agents.live.steps import intention
from agents.proposed_call import ProposedCall
from agents.refusals import Refused
from memory.metadata import MessageMetadata
from memory.models import AgentRun, RunStatus, Thread, Trigger
from memory.news import tell
from tools.approvals import verdict
from tools.models import ActionStatus, AgentAction, Approval, ApprovalState, Cause, Resolution
from tools.signature import digest

# How long a call that was approved beside the conversation may take to be started before that word is void.
TO_RUN_AGAIN = timedelta(days=1)
GIVEN_UP = "It was approved, but could not be carried out in time; nothing was done."


@dataclass(frozen=True, slots=True)
class LockedCall:
    action: AgentAction
    run: AgentRun
    thread: Thread

    def settle_approval(self, approval: Approval, state: ApprovalState, user: User | None, reason: str) -> None:
        """Decide. A run that waits in the call's step goes on; else the decision is taken like a message."""
        approval.state, approval.decided_by, approval.reason = state, user, reason
        decided = {"state": state, "decided_by": user, "reason": reason, "seen": approval.seen, "decided_at": Now()}
        is_beside = self.action.status == ActionStatus.PROPOSED
        void = {"expires_at": Now() + TO_RUN_AGAIN} if is_beside and state is ApprovalState.APPROVED else {}
        Approval.objects.filter(pk=approval.pk).update(**decided, **void)
        if is_beside:
            self._close_proposal(state, reason)
        elif AgentRun.objects.filter(pk=self.run.pk, status=RunStatus.WAITING_APPROVAL).update(
            status=RunStatus.QUEUED, due_at=None
        ):
            transaction.on_commit(partial(bell.announce_and_ring, self.thread, self.run.pk, self.run.step))
        elif user is not None:  # its run works, and may be past the place where it looks for decisions
            self._tell_decision(state, reason)
        self.announce()

    def settle_unknown(self, user_id: int | None, resolution: Resolution) -> None:
        """
        Raises:
            Refused: somebody has settled it already.
        """
        if self.action.status != ActionStatus.UNKNOWN or self.action.resolution:
            raise Refused("decided", "What became of this is settled already.")
        AgentAction.objects.filter(pk=self.action.pk).update(
            resolution=resolution, resolved_by=user_id, resolved_at=Now()
        )
        self.announce()

    def run_again(self, user: User) -> None:
        """Record the same call anew, approved."""
        new = self._anew(user, self.action.arguments, Cause.REPEATS_UNKNOWN)
        self.tell_agent(f"Run it again: {intention(new)}", new)

    def run_instead(self, user: User, arguments: dict[str, Any]) -> None:
        """Record the call as its user wants it, approved."""
        new = self._anew(user, arguments, Cause.EDITED)
        self.tell_agent(f"Run this instead: {intention(new)}", new)

    def _anew(self, user: User, arguments: dict[str, Any], cause: Cause) -> AgentAction:
        """It has an id of its own, and so an effect of its own."""
        old = self.action
        last = AgentAction.objects.filter(run=old.run_id, step=old.step).aggregate(last=Max("position"))["last"]
        new = AgentAction.objects.create(
            id=uuid.uuid5(self.run.pk, f"{old.step}/{last + 1}"),
            position=last + 1,
            status=ActionStatus.PROPOSED,
            repeats=old,
            arguments=arguments,
            **{name: getattr(old, name) for name in COPIED},
        )
        proposal = ProposedCall(new)
        Approval.objects.create(
            action=new,
            user=user,
            thread=self.thread,
            state=ApprovalState.APPROVED,
            cause=cause,
            digest=digest(new.tool, new.arguments),
            target=proposal.target,
            seen=proposal.shown,
            expires_at=Now() + TO_RUN_AGAIN,
            decided_by=user,
            decided_at=Now(),
        )
        return new

    def tell_agent(self, text: str, about: AgentAction | None = None) -> None:
        """Tell the agent in its user's place: with the run that is live, or with a new one."""
        metadata = MessageMetadata(decision=(about or self.action).pk)
        post(self.thread, text, trigger=Trigger.DECISION, metadata=metadata, inside=True)

    def announce(self) -> None:
        transaction.on_commit(partial(announce_action, self.thread, self.action.pk))

    def _close_proposal(self, state: ApprovalState, reason: str) -> None:
        """Only a person's word wakes the agent; what has expired or was withdrawn it learns with the next message."""
        if state is ApprovalState.APPROVED:
            self._tell_decision(state, reason)
            return
        why = verdict(state, reason)
        status = ActionStatus.CANCELLED if state is ApprovalState.CANCELLED else ActionStatus.DENIED
        AgentAction.objects.filter(pk=self.action.pk).update(status=status, error=why, finished_at=Now())
        if state is ApprovalState.REJECTED:
            self._tell_decision(state, reason)
        else:
            tell(self.thread.pk, f"{intention(self.action)}: {why}")

    def give_up(self) -> None:
        """Close what was approved and could not be carried out in time."""
        AgentAction.objects.filter(pk=self.action.pk).update(
            status=ActionStatus.CANCELLED, error=GIVEN_UP, finished_at=Now()
        )
        tell(self.thread.pk, f"{intention(self.action)}: {GIVEN_UP}")
        self.announce()

    def _tell_decision(self, state: ApprovalState, reason: str) -> None:
        word = "Approved" if state is ApprovalState.APPROVED else "Rejected"
        self.tell_agent(f"{word}: {intention(self.action)}" + (f". {reason}" if reason else ""))


COPIED = ("run_id", "thread_id", "user_id", "step", "call_id", "tool", "effect", "risk", "reversal")


@contextlib.contextmanager
def locked(action: AgentAction) -> Iterator[LockedCall]:
    """Lock a call in the one order that everybody keeps; what is decided is committed as one, and then announced.

    Raises:
        Refused: a person did it, so nothing about it is open.
    """
    if action.run_id is None:
        raise Refused("decided", "You did this yourself; there is nothing to decide.")
    with transaction.atomic():
        thread = Thread.objects.select_for_update(no_key=True).get(pk=action.thread_id)
        run = AgentRun.objects.select_for_update(no_key=True).get(pk=action.run_id)
        yield LockedCall(AgentAction.objects.select_for_update(no_key=True).get(pk=action.pk), run, thread)
