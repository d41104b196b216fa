"""The shapes of what was done, and of taking much of it back, in the API."""

from collections.abc import Callable
from typing import Any

from rest_framework import serializers

from agents.serializers import ActionShape, Strict, TextField, UndoPart
from tools.models import AgentAction
from tools.sought import Kind, State, Who
from tools.undo_many import MOST_AT_ONCE


class Choice(serializers.ChoiceField):
    """One of the values of an enumeration, as that."""

    def __init__(self, of: Callable[[str], Any], values: list[str]) -> None:
        super().__init__(values, required=False)
        self._of = of

    def to_internal_value(self, data: Any) -> Any:
        return self._of(super().to_internal_value(data))


class SoughtQuery(serializers.Serializer[object]):
    goal = serializers.UUIDField(required=False)
    q = TextField(required=False, max_length=200)
    tool = TextField(required=False, max_length=100)
    who = Choice(Who, [who.value for who in Who])
    kind = Choice(Kind, [kind.value for kind in Kind])
    state = Choice(State, [state.value for state in State])
    since = serializers.DateTimeField(required=False)
    until = serializers.DateTimeField(required=False)


class FoundAction(ActionShape):
    # of rows of `ActionQuerySet.with_standing` with their `goal`

    run = serializers.UUIDField(source="run_id", allow_null=True, help_text="Null: you did it yourself")
    goal = serializers.UUIDField(allow_null=True, help_text="Null: for the assistant or its helper")
    undoable = serializers.BooleanField(source="reversible", help_text="Known how; what changed since is seen then")

    class Meta(ActionShape.Meta):
        fields = ["run", "goal", "undoable", *ActionShape.Meta.fields]
        read_only_fields = fields


class UndoneShape(serializers.Serializer[AgentAction]):
    """What became, or would become, of one of several calls."""

    action = ActionShape()
    possible = serializers.BooleanField(help_text="Whether it would be taken back, or was")
    undo = serializers.UUIDField(allow_null=True, help_text="The undo, once there is one")
    why = serializers.CharField(help_text="Why it stays; may be blank")
    parts = UndoPart(many=True, help_text="The last change first; only before an undo")


class UndoneList(serializers.Serializer[object]):
    results = UndoneShape(
        many=True, help_text=f"The last call first; at most {MOST_AT_ONCE} at once, then what nobody can take back"
    )
    more = serializers.IntegerField(help_text="How many older calls follow once these are taken back: ask again")
    seen = serializers.DateTimeField(
        allow_null=True,
        help_text="When the last of them took effect: the `until` that keeps an undo to these",
    )


class UntilBody(Strict):
    until = serializers.DateTimeField(
        required=False, help_text="Leave what took effect later; with a time zone. `seen` of what was looked at"
    )


class SinceBody(UntilBody):
    since = serializers.DateTimeField(help_text="With a time zone")
