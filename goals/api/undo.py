"""Taking back many calls at once: a whole run, or what a goal's agents did since a moment (mission D8)."""

from datetime import datetime
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
from agents.serializers import ActionShape
from agents.undoing import Taken, take_back_all
from goals.action_shapes import SinceBody, UndoneList, UntilBody
from goals.activity import below
from goals.models import Goal
from memory.models import AgentRun
from tools.changes import Finding
from tools.models import AgentAction
from tools.undo import is_possible, told_of
from tools.undo_many import Batch, batch, preview, why_lasting

SINCE = OpenApiParameter("since", OpenApiTypes.DATETIME, description="With a time zone; left out, the beginning")
UNTIL = OpenApiParameter("until", OpenApiTypes.DATETIME, description="Leave what took effect later; with a time zone")


class UndoMany(ApiView):
    access = Access.OWN

    def look(self, which: Q, until: datetime | None) -> Response:
        found = batch(self.user.pk, which, until)
        parts = preview(found.actions, self.user.pk)
        return _answer(found, [looked(*each) for each in zip(found.actions, parts, strict=True)])

    def take(self, which: Q, until: datetime | None) -> Response:
        found = batch(self.user.pk, which, until)
        return _answer(found, [taken_json(each) for each in take_back_all(found.actions, self.user)])

    def asked(self, shape: type[UntilBody]) -> dict[str, Any]:
        given = shape(data=self.request.query_params.dict(), partial=True)
        given.is_valid(raise_exception=True)
        found: dict[str, Any] = given.validated_data
        return found


class UndoRun(UndoMany):
    @documented("Read what an undo of a whole run would do", {200: UndoneList}, query=[UNTIL])
    def get(self, request: Request, run_id: UUID) -> Response:
        return self.look(self.of(run_id), self.asked(UntilBody).get("until"))

    @documented("Take back all that a run did, the last first", {200: UndoneList}, body=UntilBody)
    def post(self, request: Request, run_id: UUID) -> Response:
        """What was changed since stays, with the reason; the rest is taken back all the same."""
        which = self.of(run_id)
        return self.take(which, self.body(UntilBody).get("until"))

    def of(self, run_id: UUID) -> Q:
        return Q(run=get_object_or_404(AgentRun.objects.for_user(self.user), pk=run_id))


class UndoGoal(UndoMany):
    @documented("Read what an undo since a moment would do", {200: UndoneList}, query=[SINCE, UNTIL])
    def get(self, request: Request, goal_id: UUID) -> Response:
        thread, asked = self.thread_of(goal_id), self.asked(SinceBody)
        return self.look(below(thread, asked.get("since")), asked.get("until"))

    @documented("Take back all that a goal's agents did since a moment", {200: UndoneList}, body=SinceBody)
    def post(self, request: Request, goal_id: UUID) -> Response:
        """Helpers' calls, too. What was changed since stays, with the reason; the rest is taken back all the same."""
        thread, asked = self.thread_of(goal_id), self.body(SinceBody)
        return self.take(below(thread, asked["since"]), asked.get("until"))

    def thread_of(self, goal_id: UUID) -> UUID:
        return get_object_or_404(Goal.objects.for_user(self.user), pk=goal_id).thread_id


def _answer(found: Batch, results: list[dict[str, Any]]) -> Response:
    lasting = [stays(action, why_lasting(action)) for action in found.lasting]
    return Response({"results": results + lasting, "more": found.more, "seen": found.seen})


def looked(action: AgentAction, parts: list[Finding]) -> dict[str, Any]:
    possible = is_possible(parts)
    why = "" if possible else told_of(parts)
    return _shown(action) | {"possible": possible, "undo": None, "why": why, "parts": list(map(part_json, parts))}


def taken_json(taken: Taken) -> dict[str, Any]:
    if taken.undo is None:
        return stays(taken.action, taken.why)
    return _shown(taken.action) | {"possible": True, "undo": taken.undo.pk, "why": "", "parts": []}


def stays(action: AgentAction, why: str) -> dict[str, Any]:
    return _shown(action) | {"possible": False, "undo": None, "why": why, "parts": []}


def _shown(action: AgentAction) -> dict[str, Any]:
    return {"action": ActionShape(action).data}
