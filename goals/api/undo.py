"""Taking back many calls at once: a whole run, or what a goal's agents did since a moment (mission D8)."""

from typing import Any
from uuid import UUID

from django.db.models import Q
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.approvals import part_json
from agents.api.base import Access, ApiView
from agents.api.schema import documented
from agents.serializers import ActionShape, NothingBody, SinceBody, UndoneList
from agents.undoing import Taken, take_back_all
from goals.activity import below
from goals.models import Goal
from memory.models import AgentRun
from tools.changes import Finding
from tools.models import AgentAction
from tools.undo import is_possible, preview, told_of, undoable

SINCE = OpenApiParameter("since", OpenApiTypes.DATETIME, description="With a time zone; left out, the beginning")


class UndoMany(ApiView):
    access = Access.OWN

    def look(self, which: Q) -> Response:
        actions = undoable(self.user.pk, which)
        found = zip(actions, preview(actions, self.user.pk), strict=True)
        return Response({"results": [looked(action, parts) for action, parts in found]})

    def take(self, which: Q) -> Response:
        taken = take_back_all(undoable(self.user.pk, which), self.user)
        return Response({"results": [taken_json(each) for each in taken]})


class UndoRun(UndoMany):
    @documented("Read what an undo of a whole run would do", {200: UndoneList}, errors=(401, 404))
    def get(self, request: Request, run_id: UUID) -> Response:
        return self.look(self.of(run_id))

    @documented("Take back all that a run did, the last first", {200: UndoneList}, body=NothingBody)
    def post(self, request: Request, run_id: UUID) -> Response:
        """What was changed since stays, with the reason; the rest is taken back all the same."""
        which = self.of(run_id)
        self.body(NothingBody)
        return self.take(which)

    def of(self, run_id: UUID) -> Q:
        return Q(run=get_object_or_404(AgentRun.objects.for_user(self.user), pk=run_id))


class UndoGoal(UndoMany):
    @documented("Read what an undo since a moment would do", {200: UndoneList}, query=[SINCE])
    def get(self, request: Request, goal_id: UUID) -> Response:
        thread = self.thread_of(goal_id)
        given = SinceBody(data=request.query_params.dict(), partial=True)
        given.is_valid(raise_exception=True)
        since = given.validated_data.get("since")
        return self.look(below(thread, since))

    @documented("Take back all that a goal's agents did since a moment", {200: UndoneList}, body=SinceBody)
    def post(self, request: Request, goal_id: UUID) -> Response:
        """Helpers' calls, too. What was changed since stays, with the reason; the rest is taken back all the same."""
        return self.take(below(self.thread_of(goal_id), self.body(SinceBody)["since"]))

    def thread_of(self, goal_id: UUID) -> UUID:
        return get_object_or_404(Goal.objects.for_user(self.user), pk=goal_id).thread_id


def looked(action: AgentAction, parts: list[Finding]) -> dict[str, Any]:
    possible = is_possible(parts)
    why = "" if possible else told_of(parts)
    return _shown(action) | {"possible": possible, "undo": None, "why": why, "parts": list(map(part_json, parts))}


def taken_json(taken: Taken) -> dict[str, Any]:
    undo = taken.undo.pk if taken.undo else None
    return _shown(taken.action) | {"possible": undo is not None, "undo": undo, "why": taken.why, "parts": []}


def _shown(action: AgentAction) -> dict[str, Any]:
    return {"action": ActionShape(action).data}
