"""The plan that an agent has made for itself."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.schema import documented
from agents.api.threads import AssistantThread, ThreadView
from agents.models import PlanItem
from agents.planned import Branch, current_plan


class PlanItemShape(serializers.ModelSerializer[PlanItem]):
    number = serializers.CharField(help_text="As the agent speaks of it")
    proof_gone = serializers.BooleanField(help_text="It is done, but what proved it was undone, so it is open again")
    reason = serializers.CharField(help_text="What came of it, or why it cannot be done")
    evidence = serializers.SerializerMethodField(help_text="What has proved it, in words")

    class Meta:
        model = PlanItem
        fields = ["id", "number", "title", "status", "proof_gone", "reason", "evidence", "created_at", "closed_at"]
        read_only_fields = fields

    def get_evidence(self, item: PlanItem) -> list[str]:
        return [each["words"] for each in item.evidence]


class PlanTaskShape(serializers.Serializer[Branch]):
    task = PlanItemShape(help_text="Over with the last of its subtasks")
    subtasks = PlanItemShape(many=True)


class PlanShape(serializers.Serializer[dict[str, Any]]):
    tasks = PlanTaskShape(many=True)


class Plan(ThreadView):
    @documented("Read the plan of an agent; without tasks when it has made none", {200: PlanShape}, errors=(401, 404))
    def get(self, request: Request, **kwargs: Any) -> Response:
        return Response(PlanShape({"tasks": current_plan(self.thread().pk)}).data)


class AssistantPlan(AssistantThread, Plan):
    pass
