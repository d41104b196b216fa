"""What agents keep in mind: read, added to, corrected and taken back. What is done to it answers an action, which can
be undone."""

from typing import Any
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.api.threads import AssistantThread, ThreadView
from agents.serializers import ActionShape, Strict, TextField
from memory.models import Learning
from tools.learnings import correct, take_back, tell
from tools.models import AgentAction

FORMER = OpenApiParameter("former", OpenApiTypes.BOOL, description="Those that hold no more, in place of those that do")


class LearningShape(serializers.ModelSerializer[Learning]):
    number = serializers.IntegerField(help_text="How agent and person call it, counted in one conversation")
    message = serializers.UUIDField(source="message_id", allow_null=True, help_text="What was answered when it came up")
    action = serializers.UUIDField(allow_null=True, help_text="The call that wrote it down")
    sources = serializers.ListField(child=serializers.CharField(), help_text="Whose texts the agent had read")
    replaced_by = serializers.UUIDField(source="replaced_by_id", allow_null=True)

    class Meta:
        model = Learning
        fields = [
            *("id", "number", "text", "author", "message", "action", "sources"),
            *("replaced_by", "ended_at", "created_at"),
        ]
        read_only_fields = fields


class LearningBody(Strict):
    text = TextField(max_length=10_000)


class Learnings(ThreadView):
    @listed("Learning", LearningShape, "List what an agent keeps in mind, newest first", query=[FORMER])
    def get(self, request: Request, **kwargs: Any) -> Response:
        mine = Learning.objects.filter(thread=self.thread())
        former = request.query_params.get("former", "") in ("true", "1")
        return page(request, mine.exclude(ended_at=None) if former else mine.current(), NEWEST_FIRST, learning_json)

    @documented("Have an agent keep something in mind", {201: ActionShape}, body=LearningBody)
    def post(self, request: Request, **kwargs: Any) -> Response:
        return Response(ActionShape(tell(self.thread(), self.body(LearningBody)["text"])).data, status=201)


class AssistantLearnings(AssistantThread, Learnings):
    pass


class OneLearning(ApiView):
    access = Access.OWN

    @documented("Read a learning", {200: LearningShape}, errors=(401, 404))
    def get(self, request: Request, learning_id: UUID) -> Response:
        return Response(learning_json(get_object_or_404(Learning.objects.for_user(self.user), pk=learning_id)))

    @documented("Put what is right in the place of a learning", {200: ActionShape}, body=LearningBody)
    def patch(self, request: Request, learning_id: UUID) -> Response:
        """The old one stays to be read. 404 when it holds no more."""
        return _done(correct(self.user, learning_id, self.body(LearningBody)["text"]))

    @documented("Take a learning back", {200: ActionShape}, errors=(401, 404))
    def delete(self, request: Request, learning_id: UUID) -> Response:
        """It stays to be read. 404 when it holds no more."""
        return _done(take_back(self.user, learning_id))


def learning_json(learning: Learning) -> dict[str, Any]:
    return LearningShape(learning).data


def _done(action: AgentAction | None) -> Response:
    if action is None:
        raise Http404
    return Response(ActionShape(action).data)
