"""The shapes of MCP servers in the API."""

import json
from typing import Any

from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request

from agents.live.cards import plain
from agents.serializers import Strict, TextField
from tools.mcp.definitions import Definition
from tools.mcp.models import McpServer, Transport
from tools.mcp.signing_in import State, state_of
from tools.mcp.standing import standing


class McpSaidShape(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The server's own name")
    description = serializers.CharField(help_text="As models are told it")
    schema = serializers.CharField(help_text="Of its arguments, as models are told it: JSON as text")


class McpToolShape(McpSaidShape):
    offered = serializers.CharField(help_text="What models call it")
    digest = serializers.CharField(help_text="Of all that the server says of it; to accept it")
    state = serializers.CharField(help_text="accepted, new, changed, gone or unusable")
    problem = serializers.CharField(help_text="Why it is unusable")
    reads_only = serializers.BooleanField(help_text="You have said that it changes nothing")
    agreed = McpSaidShape(
        allow_null=True, help_text="What a changed tool said when you accepted it; null: it has not changed"
    )


class McpServerShape(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField(help_text="What the names of its tools begin with; it never changes")
    label = serializers.CharField(help_text="What you call it; may be empty")  # type: ignore[assignment]
    transport = serializers.ChoiceField(choices=Transport.choices)
    url = serializers.CharField()
    argv = serializers.ListField(child=serializers.CharField())
    has_headers = serializers.BooleanField(help_text="They are encrypted and never shown again")
    sign_in = serializers.ChoiceField(
        State.choices, help_text="none: the server has not asked for it; needed: none of its tools works without"
    )
    sign_in_url = serializers.CharField(
        allow_null=True, help_text="The page to open in a browser to sign in; null: the server has not asked for it"
    )
    enabled = serializers.BooleanField()
    changed = serializers.BooleanField(help_text="An accepted tool says something else now, so none is used")
    error = serializers.CharField(help_text="What went wrong at the last check; empty when nothing did")
    checked_at = serializers.DateTimeField(allow_null=True)
    said = serializers.CharField(help_text="Of a program, the end of what it wrote to its error output")
    said_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    tools = McpToolShape(many=True)


class McpServerBody(Strict):
    name = TextField(max_length=24, help_text="What the names of its tools begin with")
    label = TextField(required=False, max_length=60, help_text="What you call it")  # type: ignore[assignment]
    url = TextField(required=False, max_length=500, help_text="Of a server over HTTP")
    headers = serializers.DictField(child=TextField(max_length=4000), required=False, help_text="Write-only")
    argv = serializers.ListField(
        child=TextField(max_length=500), required=False, max_length=50, help_text="Of a program; staff only"
    )


class McpChangeBody(Strict):
    """What is not said stays as it is. Another address or command is another server: its tools must be looked at and
    accepted anew, and headers and the sign-in are gone unless new headers are given with it."""

    enabled = serializers.BooleanField(required=False)
    label = TextField(  # type: ignore[assignment]
        required=False, max_length=60, help_text="What you call it; the names of its tools stay"
    )
    url = TextField(required=False, max_length=500)
    headers = serializers.DictField(
        child=TextField(max_length=4000), required=False, help_text="Write-only; instead of all that there were"
    )
    argv = serializers.ListField(child=TextField(max_length=500), required=False, max_length=50)


class AcceptBody(Strict):
    digests = serializers.ListField(child=TextField(max_length=64), max_length=2_000)
    reads_only = serializers.ListField(
        child=TextField(max_length=200), required=False, max_length=2_000, help_text="Own names of tools"
    )


def said(definition: Definition) -> dict[str, str]:
    """All that models are told of a tool, for whoever is to agree to it (threats T11, T17)."""
    return {
        "name": plain(definition.name),
        "description": plain(definition.description),
        "schema": plain(json.dumps(definition.schema, indent=2, ensure_ascii=False)),
    }


def shape_of(request: Request, server: McpServer) -> dict[str, Any]:
    fields = ("id", "name", "label", "transport", "url", "argv", "enabled", "changed", "error", "checked_at")
    shown = {field: getattr(server, field) for field in (*fields, "created_at")}
    tools = [
        {
            **said(each.definition),
            **{field: getattr(each.definition, field) for field in ("offered", "digest", "problem")},
            "state": each.state,
            "reads_only": each.reads_only,
            "agreed": said(each.agreed) if each.agreed else None,
        }
        for each in standing(server)
    ]
    state = state_of(server)
    page = request.build_absolute_uri(reverse("mcp_sign_in", args=[server.pk]))
    more = {
        "said": plain(server.said),
        "said_at": server.said_at,
        "sign_in": state,
        "sign_in_url": None if state is State.NONE else page,
    }
    return dict(McpServerShape({**shown, **more, "has_headers": bool(server.sealed_headers), "tools": tools}).data)
