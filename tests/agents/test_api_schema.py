"""The API describes itself completely and truly."""

import io
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.test import Client
from django.urls import URLPattern, path
from drf_spectacular.generators import SchemaGenerator
from rest_framework.views import APIView

from agents.api.base import declared
from agents.live.snapshot import message_json
from agents.serializers import MessageShape, RunShape, run_json
from config.api_urls import urlpatterns
from tests.factories import AgentRunFactory, ThreadMessageFactory

ROUTES = [route for route in urlpatterns if isinstance(route, URLPattern)]
OPEN = {"login", "schema", "docs", "nowhere"}


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    generator = SchemaGenerator(urlconf="config.urls")
    made: dict[str, Any] = generator.get_schema(request=None, public=True)
    return made


def operations(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(f"{method} {path}", op) for path, item in schema["paths"].items() for method, op in item.items()]


def test_the_schema_is_valid_and_nothing_in_it_is_guessed() -> None:
    call_command("spectacular", "--validate", "--fail-on-warn", stdout=io.StringIO())


def test_every_route_is_described(schema: dict[str, Any]) -> None:
    described = {item.split("{")[0] for item in schema["paths"]}
    for route in ROUTES:
        if route.name not in {"schema", "docs", "nowhere"}:
            assert f"/api/v1/{route.pattern}".split("<")[0] in described


def test_it_speaks_to_who_calls_and_not_to_who_reads_the_code(schema: dict[str, Any]) -> None:
    said = [operation.get("description", "") for _name, operation in operations(schema)]
    said += [shape.get("description", "") for shape in schema["components"]["schemas"].values()]
    for inner in ("Mixin", "for_user", "in the address", "Base of", "QuerySet"):
        assert not [words for words in said if inner in words], inner
    assert "client_message_id" in schema["info"]["description"]
    assert any("202: accepted" in words for words in said)


def test_every_operation_says_how_it_refuses(schema: dict[str, Any]) -> None:
    for name, operation in operations(schema):
        assert "401" in operation["responses"], name
        for status, answer in operation["responses"].items():
            if status.startswith("4"):
                reference = answer["content"]["application/json"]["schema"]["$ref"]
                assert reference == "#/components/schemas/ErrorShape", name


def test_every_operation_but_the_sign_in_needs_a_token(schema: dict[str, Any]) -> None:
    free = [name for name, operation in operations(schema) if not operation.get("security")]
    assert free == ["post /api/v1/auth/login"]


def test_ids_in_addresses_are_uuids(schema: dict[str, Any]) -> None:
    for name, operation in operations(schema):
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path" and parameter["name"] != "path":
                assert parameter["schema"] == {"type": "string", "format": "uuid"}, name


@pytest.mark.django_db
def test_runs_and_messages_have_exactly_the_described_fields() -> None:
    assert set(run_json(AgentRunFactory(), None)) == set(RunShape().fields)
    assert set(message_json(ThreadMessageFactory())) == set(MessageShape().fields)


def test_the_schema_and_its_page_are_open_to_all(client: Client) -> None:
    answer = client.get("/api/v1/schema")
    assert (answer.status_code, answer.json()["info"]["title"]) == (200, "Waymark API")
    page = client.get("/api/v1/docs")
    assert page.status_code == 200
    policy = page["Content-Security-Policy"]
    assert "script-src 'self';" in policy
    assert "<script>" not in page.content.decode()
    script = client.get("/api/v1/docs?script=")
    assert "SwaggerUIBundle" in script.content.decode()


def test_a_route_without_a_policy_fails_at_start_up() -> None:
    with pytest.raises(ImproperlyConfigured, match="secrets"):
        declared([path("secrets", APIView.as_view())])


def test_only_what_must_be_is_open() -> None:
    assert {route.name for route in ROUTES if _access(route) == "public"} == OPEN


def _access(route: URLPattern) -> str:
    return str(getattr(route.callback, "cls").access)  # noqa: B009 (what as_view adds to the function)
