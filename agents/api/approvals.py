"""Calls that need a person's word, and calls whose outcome nobody knows."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents import decisions
from agents.api.base import Access, ApiView
from agents.api.pages import page
from agents.api.schema import documented, listed
from agents.approval_shapes import ApprovalShape, DecisionBody
from agents.serializers import ActionShape, NothingBody, ResolutionBody, UndoShape
from agents.undoing import take_back
from memory.keyset import Order
from tools.changes import Finding
from tools.models import AgentAction, Approval, ApprovalState, Resolution
from tools.trust import Earned, Scope
from tools.undo import Standing, can_be_undone, findings, is_possible

NEWEST_FIRST = Order(("requested_at", "pk"), descending=True)
STATE = OpenApiParameter("state", str, enum=ApprovalState.values)


class Approvals(ApiView):
    access = Access.OWN

    @listed("Approval", ApprovalShape, "List calls that wait for your word or had it, newest first", query=[STATE])
    def get(self, request: Request) -> Response:
        approvals = Approval.objects.for_user(self.user).select_related("action")
        if state := request.query_params.get("state"):
            approvals = approvals.filter(state=_state(state))
        earned = Earned(self.user.pk)
        return page(request, approvals, NEWEST_FIRST, lambda approval: approval_json(approval, earned))


class DecideApproval(ApiView):
    access = Access.OWN

    @documented("Approve, reject or change a call; only what you were shown", {200: ApprovalShape}, body=DecisionBody)
    def post(self, request: Request, approval_id: UUID) -> Response:
        """The same decision twice changes nothing. An edit closes the call, and yours runs in its place. 400 with a
        code: decided (otherwise), closed, expired, changed, invalid (arguments), not_earned (to be allowed)."""
        mine = Approval.objects.for_user(self.user).select_related("action")
        action = get_object_or_404(mine, pk=approval_id).action
        given = self.body(DecisionBody)
        if given["decision"] == "edit":
            decisions.edit(action, self.user, given["hash"], given.get("arguments", {}))
        else:
            state = ApprovalState.APPROVED if given["decision"] == "approve" else ApprovalState.REJECTED
            allow = Scope(given["allow"]) if "allow" in given else None
            decisions.decide(action, self.user, state, given["hash"], given.get("reason", ""), allow)
        return Response(approval_json(mine.get(pk=approval_id), Earned(self.user.pk)))


class ResolveAction(ApiView):
    access = Access.OWN

    @documented("Say what became of a call whose outcome is unknown", {200: ActionShape}, body=ResolutionBody)
    def post(self, request: Request, action_id: UUID) -> Response:
        """`check` is done in the background, for tools that can look it up."""
        mine = AgentAction.objects.for_user(self.user)
        action = get_object_or_404(mine, pk=action_id)
        decisions.resolve(action, self.user, RESOLUTIONS[self.body(ResolutionBody)["resolution"]])
        return Response(ActionShape(mine.get(pk=action_id)).data)


class UndoAction(ApiView):
    access = Access.OWN

    @documented("Read what an undo would do, part by part", {200: UndoShape}, errors=(401, 404))
    def get(self, request: Request, action_id: UUID) -> Response:
        action = get_object_or_404(AgentAction.objects.for_user(self.user), pk=action_id)
        parts = findings(action, Standing(self.user.pk)) if can_be_undone(action) else []
        return Response({"possible": is_possible(parts), "parts": [part_json(part) for part in parts]})

    @documented("Take a call back; answers the undo, which can be taken back in turn", {200: ActionShape})
    def post(self, request: Request, action_id: UUID) -> Response:
        """Twice is the same as once. 400 with the code not_undone, and nothing is taken back, when it was changed since
        or cannot be undone. `output` says what became of each part; what failed can be tried again."""
        action = get_object_or_404(AgentAction.objects.for_user(self.user), pk=action_id)
        self.body(NothingBody)
        return Response(ActionShape(take_back(action, self.user)).data)


def part_json(part: Finding) -> dict[str, Any]:
    change = part.change
    return {
        "verdict": part.verdict,
        "kind": change.kind if change else None,
        "name": change.name if change else None,
        "why": part.why,
        "changed_since": list(part.fields),
        "before": change.before if change else None,
        "after": change.after if change else None,
        "now": part.now,
    }


RESOLUTIONS = {"happened": Resolution.HAPPENED, "run_again": Resolution.RUN_AGAIN, "check": Resolution.CHECKED}


def approval_json(approval: Approval, earned: Earned) -> dict[str, Any]:
    return ApprovalShape(approval, context={"earned": earned}).data


def _state(value: str) -> str:
    if value not in ApprovalState.values:
        raise ValidationError({"state": [f"One of {', '.join(ApprovalState.values)}."]})
    return value
