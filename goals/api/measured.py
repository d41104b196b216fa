"""Measured goals: the target, what was measured, and where it leads."""

from typing import Any
from uuid import UUID

from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.serializers import Strict, TextField
from goals import deeds, measuring
from goals.api.goals import GoalThread
from goals.measured import Measurement


class ForecastShape(serializers.Serializer[Any]):
    """For the deadline, if things go on as they did."""

    expected = serializers.FloatField()
    low = serializers.FloatField(help_text="Four times out of five it lies between `low` and `high`")
    high = serializers.FloatField()
    weekly = serializers.FloatField(help_text="By how much it moves in a week")
    needed = serializers.FloatField(allow_null=True, help_text="By how much it would have to")
    reached_on = serializers.DateField(allow_null=True)


class TargetShape(serializers.Serializer[measuring.Outlook]):
    name = serializers.CharField(source="target.name")
    unit = serializers.CharField(source="target.unit")
    value = serializers.FloatField(source="target.value")
    deadline = serializers.DateField(source="target.deadline")
    forecast = ForecastShape(allow_null=True, help_text="Null: fewer than three measurements")
    created_at = serializers.DateTimeField(source="target.created_at")


class TargetBody(Strict):
    name = TextField(max_length=1_000)
    value = serializers.FloatField()
    deadline = serializers.DateField()
    unit = TextField(required=False, max_length=1_000)


class MeasurementShape(serializers.ModelSerializer[Measurement]):
    message = serializers.UUIDField(source="message_id", allow_null=True, help_text="What was answered when it came up")
    action = serializers.UUIDField(allow_null=True, help_text="The call that wrote it down")
    sources = serializers.ListField(child=serializers.CharField(), help_text="Whose texts the agent had read")

    class Meta:
        model = Measurement
        fields = ["id", "value", "day", "note", "author", "message", "action", "sources", "created_at"]
        read_only_fields = fields


class MeasurementBody(Strict):
    value = serializers.FloatField()
    day = serializers.DateField(required=False)
    note = TextField(required=False, max_length=10_000)


class GoalTarget(GoalThread):
    @documented("Read the target of a goal, and its forecast", {200: TargetShape}, errors=(401, 404))
    def get(self, request: Request, goal_id: UUID) -> Response:
        """404 when the goal is not measured."""
        return Response(self._shown())

    @documented("Set what is to be reached until when", {200: TargetShape}, body=TargetBody)
    def put(self, request: Request, goal_id: UUID) -> Response:
        deeds.set_target(self.thread(), **self.body(TargetBody))
        return Response(self._shown())

    @documented("Measure a goal no more; what was measured is kept", {204: None}, errors=(401, 404))
    def delete(self, request: Request, goal_id: UUID) -> Response:
        deeds.drop_target(self.thread())
        return Response(status=204)

    def _shown(self) -> dict[str, Any]:
        stands = measuring.outlook(self.thread().pk)
        if stands is None:
            raise Http404
        shown: dict[str, Any] = TargetShape(stands).data
        return shown


class GoalMeasurements(GoalThread):
    @listed("Measurement", MeasurementShape, "List what was measured of a goal, newest first")
    def get(self, request: Request, goal_id: UUID) -> Response:
        return page(request, Measurement.objects.filter(thread=self.thread()), NEWEST_FIRST, measurement_json)

    @documented("Write down a measurement", {201: MeasurementShape}, body=MeasurementBody)
    def post(self, request: Request, goal_id: UUID) -> Response:
        return Response(measurement_json(deeds.measure(self.thread(), **self.body(MeasurementBody))), status=201)


class OneMeasurement(ApiView):
    access = Access.OWN

    @documented("Read a measurement", {200: MeasurementShape}, errors=(401, 404))
    def get(self, request: Request, measurement_id: UUID) -> Response:
        return Response(measurement_json(self._mine(measurement_id)))

    @documented("Delete a measurement", {204: None}, errors=(401, 404))
    def delete(self, request: Request, measurement_id: UUID) -> Response:
        deeds.delete_measurement(self._mine(measurement_id))
        return Response(status=204)

    def _mine(self, measurement_id: UUID) -> Measurement:
        return get_object_or_404(Measurement.objects.for_user(self.user), pk=measurement_id)


def measurement_json(measurement: Measurement) -> dict[str, Any]:
    return MeasurementShape(measurement).data
