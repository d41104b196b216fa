"""How routes describe themselves in the OpenAPI schema."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers

from agents.api.pages import DEFAULT_LIMIT, MAX_LIMIT
from agents.serializers import ErrorShape

Decorated = TypeVar("Decorated", bound=Callable[..., Any])
type Shape = type[serializers.BaseSerializer[Any]]

MEANINGS = {
    400: ("invalid", "title: A field is wrong.", {"title": ["A field is wrong."]}),
    401: ("not_authenticated", "Authentication credentials were not provided.", None),
    404: ("not_found", "There is no such thing here.", None),
    409: (
        "skill_taken",
        "You have a skill 'plan-a-week' already.",
        None,
    ),
    429: ("throttled", "Request was throttled. Expected available in 240 seconds.", None),
}
PAGING = [
    OpenApiParameter("limit", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}),
    OpenApiParameter("cursor", str, description="From `next` of the page before"),
]


def documented(
    summary: str,
    answers: dict[int, Shape | None],
    *,
    body: Shape | Mapping[str, Shape] | None = None,
    errors: Sequence[int] = (400, 401, 404),
    query: Sequence[OpenApiParameter] = (),
    public: bool = False,
    examples: Sequence[OpenApiExample] = (),
    name: str | None = None,
) -> Callable[[Decorated], Decorated]:
    """Describe one method of a route: what it takes, what it answers, and how it says no.

    Args:
        body: the shape of its JSON, or shapes by media type.
        answers: shape by status; None for an answer without a body.
        errors: the statuses it refuses with, all in ErrorShape.
        name: of the operation, where the one that follows from the address is taken.
    """
    return extend_schema(
        operation_id=name,
        summary=summary,
        request=body,
        responses={**answers, **dict.fromkeys(errors, ErrorShape)},
        parameters=list(query),
        examples=[*examples, *(_error_example(status) for status in errors)],
        auth=[] if public else None,
    )


def listed(
    paged: str, shape: Shape, summary: str, query: Sequence[OpenApiParameter] = (), name: str | None = None
) -> Callable[[Decorated], Decorated]:
    """Describe a GET that answers pages of `shape`. `paged` is what they are pages of, in the schema's words."""
    fields = {
        "results": shape(many=True),
        "next": serializers.CharField(allow_null=True, help_text="Relative address of the next page; null: the last"),
    }
    shown = inline_serializer(f"{paged}Page", fields)
    return documented(summary, {200: shown}, query=[*query, *PAGING], name=name)  # type: ignore[dict-item]


def _error_example(status: int) -> OpenApiExample:
    code, message, fields = MEANINGS[status]
    error = {"code": code, "message": message} | ({"fields": fields} if fields else {})
    return OpenApiExample(code, value={"error": error}, response_only=True, status_codes=[str(status)])
