"""The shapes of the API: what may come in, and what goes out (for the schema and for the answers)."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from rest_framework import serializers

from agents.live import snapshot
from agents.models import ModelConnection
from memory.models import (
    AgentHistory,
    AgentRun,
    ArchiveReason,
    MessageType,
    Note,
    RunStatus,
    Source,
    ThreadMessage,
    Trigger,
)
from memory.text import clean
from tools.changes import Verdict
from tools.models import ActionStatus, AgentAction


class Strict(serializers.Serializer[Any]):
    """Base of every body: a field that is not declared is an error, never ignored."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = set(data) - set(self.fields) if isinstance(data, Mapping) else set()
        if unknown:
            raise serializers.ValidationError({str(name): ["There is no such field."] for name in sorted(unknown)})
        return super().to_internal_value(data)


class TextField(serializers.CharField):
    """Text of people, kept as written; what cannot be stored becomes U+FFFD (memory.text). Services check the rest."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"allow_blank": True, "trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(clean(data))


class LoginBody(Strict):
    email = serializers.CharField(max_length=254)
    password = serializers.CharField(max_length=4096, trim_whitespace=False)
    device = TextField(required=False, max_length=100, help_text="A name for the list of devices")


class LoginAnswer(serializers.Serializer[Any]):
    token = serializers.CharField(help_text="For the header `Authorization: Bearer …`; shown only here")


class MessageBody(Strict):
    content = TextField(help_text="May be blank when files are attached")
    client_message_id = serializers.UUIDField(
        required=False, allow_null=True, help_text="Sending the same id again gives the same message and run"
    )
    answers = serializers.UUIDField(
        required=False,
        allow_null=True,
        help_text="The message that asks, when `content` was picked of its `asks`. Of several picks the first counts",
    )


class MessageWithFiles(MessageBody):
    """As multipart/form-data."""

    content = TextField(required=False, default="")
    files = serializers.ListField(
        child=serializers.FileField(allow_empty_file=True, max_length=None), required=False, default=list
    )


class NoteBody(Strict):
    title = TextField()
    body = TextField(required=False)


class NothingBody(Strict):
    """For routes that take no body."""


class MessageShape(serializers.Serializer[ThreadMessage]):
    id = serializers.UUIDField()
    source = serializers.ChoiceField(Source.choices)  # type: ignore[assignment]
    message_type = serializers.ChoiceField(MessageType.choices)
    content = serializers.CharField()
    metadata = serializers.DictField(
        help_text="attachments (id, name, media_type, size; width and height of a picture); action, task, decision, "
        "interim, thinking, retryable, reason; asks of a question (answers to pick from, perhaps none), answers; "
        "attempt, of and next_at of an error after which the run tries again by itself (a later message with the same "
        "id replaces it)"
    )
    run = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()

    def to_representation(self, instance: ThreadMessage) -> dict[str, Any]:
        return snapshot.message_json(instance)


class TokensShape(serializers.Serializer[Any]):
    input = serializers.IntegerField()
    output = serializers.IntegerField()
    cached = serializers.IntegerField(help_text="The part of the input that came from the model's cache")
    written = serializers.IntegerField(help_text="The part of the input that was written to it")


class TaskShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    title = serializers.CharField()


class RunShape(serializers.Serializer[AgentRun]):
    id = serializers.UUIDField()
    goal = serializers.UUIDField(allow_null=True, help_text="Null: a run of the assistant or of its helper")
    task = TaskShape(allow_null=True, help_text="What a helper was sent off to do; null: no helper's run")
    status = serializers.ChoiceField(RunStatus.choices)
    trigger = serializers.ChoiceField(Trigger.choices)
    reason = serializers.CharField(help_text="Why it ended, when it did not end by itself; else empty")
    error = serializers.CharField(help_text="Empty when nothing went wrong")
    iterations = serializers.IntegerField(help_text="Model calls so far")
    tokens = TokensShape()
    cost = serializers.CharField(allow_null=True, help_text="US dollars as a decimal string; null: unknown")
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


def run_json(run: AgentRun, goal: UUID | None, task: dict[str, Any] | None = None) -> dict[str, Any]:
    """A run as RunShape says. `goal` and `task` are given by the caller, who knows what the run's thread belongs to."""
    tokens = {"input": run.input_tokens, "output": run.output_tokens}
    tokens |= {"cached": run.cached_tokens, "written": run.written_tokens}
    return {**snapshot.run_json(run), "goal": goal, "task": task, "tokens": tokens}


class AcceptedShape(serializers.Serializer[Any]):
    message = MessageShape()
    run = RunShape(allow_null=True, help_text="The run that answers it; null when its thread is being closed")


class ActionShape(serializers.ModelSerializer[AgentAction]):
    status = serializers.ChoiceField(ActionStatus.choices)
    taken_back = serializers.SerializerMethodField(help_text="The undo of it that holds, if it was undone")

    class Meta:
        model = AgentAction
        fields = [
            "id",
            "step",
            "position",
            "tool",
            "effect",
            "risk",
            "reversal",
            "arguments",
            "status",
            "summary",
            "output",
            "error",
            "resolution",
            "undone",
            "undoes",
            "taken_back",
            "created_at",
            "started_at",
            "finished_at",
        ]
        read_only_fields = fields

    def get_taken_back(self, action: AgentAction) -> UUID | None:
        """Of rows of `ActionQuerySet.with_standing`."""
        known: UUID | None = vars(action).get("taken_back")
        return known


class UndoPart(serializers.Serializer[object]):
    """What an undo would do with one thing that a call changed."""

    verdict = serializers.ChoiceField([verdict.value for verdict in Verdict])
    kind = serializers.CharField(allow_null=True, help_text="Of the thing, such as note")
    name = serializers.CharField(allow_null=True)
    why = serializers.CharField(help_text="Why it stays as it is; may be blank")
    changed_since = serializers.ListField(child=serializers.CharField(), help_text="Fields that somebody else changed")
    before = serializers.DictField(allow_null=True, help_text="Null: it was not there")
    after = serializers.DictField(allow_null=True, help_text="Null: it was removed")
    now = serializers.DictField(allow_null=True, help_text="Null: it is not there")


class UndoShape(serializers.Serializer[object]):
    possible = serializers.BooleanField(help_text="Whether something would be taken back, and nothing lost by it")
    parts = UndoPart(many=True, help_text="The last change first")


class ResolutionBody(Strict):
    resolution = serializers.ChoiceField(["happened", "run_again", "check"])


class NoteShape(serializers.ModelSerializer[Note]):
    class Meta:
        model = Note
        fields = ["id", "title", "body", "author", "created_at", "updated_at"]
        read_only_fields = fields


class SessionShape(serializers.ModelSerializer[AgentHistory]):
    reason = serializers.ChoiceField(ArchiveReason.choices, help_text="Why the session was archived")
    number = serializers.SerializerMethodField(help_text="Counted from 1 within the conversation")

    class Meta:
        model = AgentHistory
        fields = ["id", "number", "reason", "title", "summary", "message_count", "started_at", "ended_at"]
        read_only_fields = fields

    def get_number(self, session: AgentHistory) -> int:
        return session.generation + 1


class WholeSessionShape(SessionShape):
    entries = serializers.ListField(
        child=serializers.DictField(), help_text="As the model saw them: seq, role, blocks, run, at"
    )

    class Meta(SessionShape.Meta):
        fields = [*SessionShape.Meta.fields, "entries"]
        read_only_fields = fields


class ModelShape(serializers.ModelSerializer[ModelConnection]):
    """Facts that nobody knows are null."""

    name = serializers.CharField(source="__str__")
    tools = serializers.BooleanField(source="capabilities.tools", allow_null=True)
    images = serializers.BooleanField(source="capabilities.images", allow_null=True)
    context_length = serializers.IntegerField(source="capabilities.context_length", allow_null=True, help_text="Tokens")

    class Meta:
        model = ModelConnection
        fields = [
            *("id", "name", "kind", "model", "is_default", "works", "tested_at", "created_at"),
            *("tools", "images", "context_length"),
        ]
        read_only_fields = fields


class ErrorDetail(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="For programs: invalid, not_found, throttled, …")
    message = serializers.CharField(help_text="For people")
    fields = serializers.DictField(  # type: ignore[assignment]
        child=serializers.ListField(child=serializers.CharField()),
        required=False,
        help_text="Which fields of the body or query are wrong, and why",
    )


class ErrorShape(serializers.Serializer[Any]):
    error = ErrorDetail()
