"""Runs: what agents are doing and have done."""

from typing import Any
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Coalesce
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents import services
from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.restart import restart
from agents.serializers import ActionShape, NothingBody, RunShape, run_json
from agents.stopping import stop_run
from memory.keyset import Order
from memory.models import AgentRun, RunQuerySet, RunStatus
from tools.models import AgentAction

IN_ORDER = Order(("step", "position"), descending=False)
FILTERS = [
    OpenApiParameter("goal", OpenApiTypes.UUID, description="Only runs of this goal and of its helpers"),
    OpenApiParameter("status", str, enum=RunStatus.values),
]


class RunView(ApiView):
    access = Access.OWN

    def runs(self) -> RunQuerySet:
        runs = AgentRun.objects.for_user(self.user).select_related("thread")
        return runs.annotate(
            goal=Coalesce("thread__goals_goal", "thread__agents_agenttask__parent__goals_goal"),
            task=F("thread__agents_agenttask"),
            task_title=F("thread__agents_agenttask__title"),
        )

    def found(self, run_id: UUID) -> AgentRun:
        return get_object_or_404(self.runs(), pk=run_id)


class Runs(RunView):
    @listed("Run", RunShape, "List the runs of your agents, newest first", query=FILTERS, name="runs_list")
    def get(self, request: Request) -> Response:
        runs = self.runs()
        if goal := request.query_params.get("goal"):
            goal_id = _uuid("goal", goal)
            helpers = Q(thread__agents_agenttask__parent__goals_goal=goal_id)
            runs = runs.filter(Q(thread__goals_goal=goal_id) | helpers)
        if status := request.query_params.get("status"):
            runs = runs.filter(status=_status(status))
        return page(request, runs, NEWEST_FIRST, shown)


class OneRun(RunView):
    @documented("Read a run", {200: RunShape}, errors=(401, 404))
    def get(self, request: Request, run_id: UUID) -> Response:
        return Response(shown(self.found(run_id)))


class StopRun(RunView):
    @documented("Stop a run; stopping one that has ended changes nothing", {200: RunShape})
    def post(self, request: Request, run_id: UUID) -> Response:
        self.body(NothingBody)
        stop_run(self.found(run_id))
        return Response(shown(self.found(run_id)))


class RetryRun(RunView):
    @documented("Try again now; a run that does not wait for its model is left alone", {200: RunShape})
    def post(self, request: Request, run_id: UUID) -> Response:
        self.body(NothingBody)
        services.retry_now(self.found(run_id))
        return Response(shown(self.found(run_id)))


class RestartRun(RunView):
    @documented("Start from the summary after a run whose history the model refused", {202: RunShape})
    def post(self, request: Request, run_id: UUID) -> Response:
        """The session is archived by a worker; then what you had said is said again, as a message of its own."""
        self.body(NothingBody)
        restart(self.found(run_id))
        return Response(shown(self.found(run_id)), status=202)


class RunActions(RunView):
    @listed("Action", ActionShape, "List what a run did, in order")
    def get(self, request: Request, run_id: UUID) -> Response:
        actions = AgentAction.objects.with_standing().filter(run=self.found(run_id))
        return page(request, actions, IN_ORDER, action_json)


def shown(run: AgentRun) -> dict[str, Any]:
    """A run of `RunView.runs`, which knows whose it is by annotations of its query."""
    known = vars(run)
    task = {"id": known["task"], "title": known["task_title"]} if known["task"] else None
    return run_json(run, known["goal"], task)


def action_json(action: AgentAction) -> dict[str, Any]:
    return ActionShape(action).data


def _uuid(name: str, value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError as problem:
        raise ValidationError({name: ["Not a UUID."]}) from problem


def _status(value: str) -> str:
    if value not in RunStatus.values:
        raise ValidationError({"status": [f"One of {', '.join(RunStatus.values)}."]})
    return value
