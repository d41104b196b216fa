"""Goals and their conversations."""

from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.api.threads import Events, Messages, ThreadView
from agents.models import ModelConnection
from goals import services
from goals.models import Goal, GoalQuerySet
from goals.serializers import GoalBody, GoalChanges, GoalShape, Shelf, goal_json
from goals.toolbox import set_modes, set_packs
from memory.hot import columns, load_joined
from memory.models import Thread

OWN_THREAD = (
    f"SELECT {columns(Thread, 't')} FROM memory_thread t JOIN goals_goal g ON g.thread_id = t.id "  # noqa: S608
    "WHERE g.id = %(goal)s AND t.user_id = %(user)s"
)
WANTED = OpenApiExample(
    "a goal", value={"title": "Run a half marathon", "description": "In May, under two hours"}, request_only=True
)


class GoalView(ApiView):
    access = Access.OWN

    def goals(self) -> GoalQuerySet:
        return Goal.objects.for_user(self.user).select_related("thread")

    def found(self, goal_id: UUID) -> Goal:
        return get_object_or_404(self.goals(), pk=goal_id)


class Goals(GoalView):
    @listed("Goal", GoalShape, "List your goals, newest first", name="goals_list")
    def get(self, request: Request) -> Response:
        return page(request, self.goals(), NEWEST_FIRST, goal_json)

    @documented("Create a goal", {201: GoalShape}, body=GoalBody, errors=(400, 401), examples=[WANTED])
    def post(self, request: Request) -> Response:
        given = self.body(GoalBody)
        return Response(goal_json(services.create_goal(self.user, **given)), status=201)


class OneGoal(GoalView):
    @documented("Read a goal", {200: GoalShape}, errors=(401, 404))
    def get(self, request: Request, goal_id: UUID) -> Response:
        return Response(goal_json(self.found(goal_id)))

    @documented("Change a goal, put it away or take it out again", {200: GoalShape}, body=GoalChanges)
    def patch(self, request: Request, goal_id: UUID) -> Response:
        goal = self.found(goal_id)
        changes = self.body(GoalChanges, partial=True)
        shelf = changes.pop("status", None)
        with transaction.atomic():
            if "model" in changes:
                services.choose_model(goal, self._connection(changes.pop("model")))
            if "packs" in changes:
                set_packs(goal, changes.pop("packs"))
            if "modes" in changes:
                set_modes(goal, changes.pop("modes"))
            if changes:
                services.update_goal(goal, **changes)
        if shelf == Shelf.ARCHIVED and goal.archived_at is None:
            services.archive_goal(goal)
        elif shelf == Shelf.WAITING and goal.archived_at is not None:
            services.reopen_goal(goal)
        return Response(goal_json(self.found(goal_id)))

    def _connection(self, model: UUID | None) -> ModelConnection | None:
        if model is None:
            return None
        found = ModelConnection.objects.for_user(self.user).filter(pk=model).first()
        if found is None:
            raise ValidationError({"model": ["You have no such model."]})
        return found

    @documented("Delete a goal with everything in it", {204: None}, errors=(401, 404))
    def delete(self, request: Request, goal_id: UUID) -> Response:
        services.delete_goal(self.found(goal_id))
        return Response(status=204)


class GoalThread(ThreadView):
    """Mixin: the thread of the goal in the address."""

    def thread(self) -> Thread:
        """A prepared statement, because each message that is sent comes through here."""
        found = load_joined(OWN_THREAD, {"goal": self.kwargs["goal_id"], "user": self.user.pk}, Thread)
        if not found:
            raise Http404
        return cast(Thread, found[0])

    def goal(self) -> UUID | None:
        goal_id: Any = self.kwargs["goal_id"]
        return UUID(str(goal_id))


class GoalMessages(GoalThread, Messages):
    pass


class GoalEvents(GoalThread, Events):
    pass
