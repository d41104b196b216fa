"""When agents look in by themselves."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.api.threads import AssistantThread, ThreadView
from agents.refusals import Refused
from agents.serializers import NothingBody, Strict, TextField
from goals import deeds, schedules
from goals.api.goals import GoalThread
from goals.firing import fire_now
from goals.schedule import Schedule


class ScheduleShape(serializers.ModelSerializer[Schedule]):
    said = serializers.SerializerMethodField(help_text="When it comes, in words")
    rule = serializers.CharField(
        help_text="Five fields of cron, in the user's time zone; empty for what comes once. After them “/2w+1” or "
        "“/3d+0” may stand: only every second week or third day counts, and one, or none, passed from Monday, 1 "
        "January 2024, until the first of them"
    )
    last_run = serializers.UUIDField(allow_null=True, help_text="What its last time has begun")

    class Meta:
        model = Schedule
        fields = [
            *("id", "kind", "author", "rule", "said", "intent", "only_if_changed", "paused", "next_at"),
            *("last_at", "last_result", "last_run", "skipped_from", "created_at"),
        ]
        read_only_fields = fields

    def get_said(self, schedule: Schedule) -> str:
        return schedules.said(schedule)


class ScheduleBody(Strict):
    time = TextField(max_length=200, help_text='In words ("every weekday 8:00", "in 3 days"), or a `rule`')
    intent = TextField(required=False, max_length=10_000)
    only_if_changed = serializers.BooleanField(required=False)


class ScheduleChanges(Strict):
    time = TextField(required=False, max_length=200)
    intent = TextField(required=False, max_length=10_000)
    only_if_changed = serializers.BooleanField(required=False)
    paused = serializers.BooleanField(required=False)


class Schedules(ThreadView):
    @listed("Schedule", ScheduleShape, "List when an agent looks in by itself, newest first")
    def get(self, request: Request, **kwargs: Any) -> Response:
        mine = Schedule.objects.filter(thread=self.thread()).set_by_somebody()
        return page(request, mine, NEWEST_FIRST, schedule_json)

    @documented("Set a time at which an agent looks in", {201: ScheduleShape}, body=ScheduleBody)
    def post(self, request: Request, **kwargs: Any) -> Response:
        return Response(schedule_json(deeds.set_time(self.thread(), **self.body(ScheduleBody))), status=201)


class GoalSchedules(GoalThread, Schedules):
    pass


class AssistantSchedules(AssistantThread, Schedules):
    pass


class OneSchedule(ApiView):
    access = Access.OWN

    @documented("Read a schedule", {200: ScheduleShape}, errors=(401, 404))
    def get(self, request: Request, schedule_id: UUID) -> Response:
        return Response(schedule_json(_mine(self, schedule_id)))

    @documented("Change, pause or resume a schedule", {200: ScheduleShape}, body=ScheduleChanges)
    def patch(self, request: Request, schedule_id: UUID) -> Response:
        schedule, given = _mine(self, schedule_id), self.body(ScheduleChanges)
        paused = given.pop("paused", None)
        if given:
            deeds.change_time(schedule, **given)
        if paused is not None:
            (deeds.pause_time if paused else deeds.resume_time)(schedule)
        return Response(schedule_json(_mine(self, schedule_id)))

    @documented("Delete a schedule", {204: None}, errors=(401, 404))
    def delete(self, request: Request, schedule_id: UUID) -> Response:
        deeds.delete_time(_mine(self, schedule_id))
        return Response(status=204)


class BeginSchedule(ApiView):
    access = Access.OWN

    @documented("Let the agent look in now", {200: ScheduleShape}, body=NothingBody)
    def post(self, request: Request, schedule_id: UUID) -> Response:
        self.body(NothingBody)
        schedule = _mine(self, schedule_id)
        if not fire_now(schedule):
            raise Refused("too_many_waiting", "Too much waits already; try again when some of it is done.")
        return Response(schedule_json(schedule))


def _mine(view: ApiView, schedule_id: UUID) -> Schedule:
    mine = Schedule.objects.for_user(view.user).set_by_somebody().select_related("thread")
    return get_object_or_404(mine, pk=schedule_id)


def schedule_json(schedule: Schedule) -> dict[str, Any]:
    return ScheduleShape(schedule).data
