"""Archived sessions of a goal: what was said before the conversation that goes on now."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import page
from agents.api.schema import documented, listed
from agents.serializers import SessionShape, WholeSessionShape
from goals.api.goals import GoalThread
from memory.keyset import Order
from memory.models import AgentHistory

LATEST_FIRST = Order(("generation",), descending=True)


class GoalSessions(GoalThread):
    @listed("Session", SessionShape, "List the archived sessions of a goal, newest first")
    def get(self, request: Request, goal_id: UUID) -> Response:
        sessions = AgentHistory.objects.done().filter(thread=self.thread()).defer("entries", "text")
        return page(request, sessions, LATEST_FIRST, lambda session: SessionShape(session).data)


class OneSession(ApiView):
    access = Access.OWN

    @documented("Read an archived session with everything that was said", {200: WholeSessionShape}, errors=(401, 404))
    def get(self, request: Request, session_id: UUID) -> Response:
        found = get_object_or_404(AgentHistory.objects.for_user(self.user).done(), pk=session_id)
        answer: dict[str, Any] = WholeSessionShape(found).data
        return Response(answer)
