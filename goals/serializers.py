"""The shapes of goals in the API."""

from typing import Any

from django.db.models import TextChoices
from rest_framework import serializers

from agents.serializers import Strict, TextField
from goals.models import Goal, GoalStatus
from tools.filing import Files
from tools.sandbox.listing import Entry


class GoalBody(Strict):
    title = TextField()
    description = TextField(required=False)


class Shelf(TextChoices):
    """What a client may set: whether the goal is put away. Working and waiting follow from its runs."""

    ARCHIVED = "archived"
    WAITING = "waiting"


class GoalChanges(Strict):
    title = TextField(required=False)
    description = TextField(required=False)
    status = serializers.ChoiceField(
        Shelf.choices, required=False, help_text="archived puts the goal away, waiting takes it out again"
    )
    model = serializers.UUIDField(required=False, allow_null=True, help_text="One of your models; null: your default")
    modes = serializers.DictField(
        child=serializers.CharField(), required=False, help_text="off, ask or auto, by names of tools; others stay"
    )
    packs = serializers.ListField(
        child=serializers.CharField(), required=False, help_text="The packs of tools that are on: reflective, or none"
    )


class GoalShape(serializers.ModelSerializer[Goal]):
    status = serializers.ChoiceField(GoalStatus.choices)
    live_run = serializers.UUIDField(source="thread.live_run", allow_null=True, help_text="The run at work, if any")

    thread = serializers.UUIDField(source="thread_id", help_text="Of its conversation; a budget may be set for it")
    active_at = serializers.DateTimeField(source="thread.active_at", help_text="When you last wrote here")

    model = serializers.UUIDField(
        source="model_connection_id", allow_null=True, help_text="The model of this goal alone; null: your default"
    )

    modes = serializers.DictField(
        child=serializers.CharField(), help_text="Tools that are not as usual here: off, ask or auto, by their names"
    )
    packs = serializers.ListField(child=serializers.CharField(), help_text="Packs of tools that are switched on")
    sources = serializers.ListField(
        source="thread.sources", child=serializers.CharField(), help_text="Whose texts its agent has read"
    )

    class Meta:
        model = Goal
        fields = [
            *("id", "thread", "title", "description", "status", "blaze", "model", "modes", "packs", "sources"),
            *("live_run", "active_at", "created_at"),
        ]
        read_only_fields = fields


class FileBody(Strict):
    file = serializers.FileField(allow_empty_file=True)
    path = TextField(required=False, help_text="Where it is to be, with its name; left out, its own name")


class FileShape(serializers.Serializer[Entry]):
    path = serializers.CharField(help_text="Relative to the workspace; it goes into the file's address")
    size = serializers.IntegerField(help_text="Bytes")
    changed_at = serializers.DateTimeField()


class FilesShape(serializers.Serializer[Files]):
    results = FileShape(many=True, source="entries")
    used = serializers.IntegerField(help_text="Bytes that all of them take")
    most = serializers.IntegerField(help_text="Bytes that they may take")
    next = serializers.CharField(
        allow_null=True, read_only=True, help_text="Relative address of the next page; null: the last"
    )


def goal_json(goal: Goal) -> dict[str, Any]:
    return GoalShape(goal).data
