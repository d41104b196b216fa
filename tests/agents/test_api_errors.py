"""Every refusal has one shape."""

import logging
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.test import Client

from agents import shares
from goals.api import goals as goal_routes
from tests.factories import GoalFactory, UserFactory, bearer

pytestmark = pytest.mark.django_db
GOALS = "/api/v1/goals"
NOWHERE = ["/api/v1/", "/api/v1/nothing", "/api/v1/goals/", "/api/v1/goals/7", "/api/v1/runs/x/stop"]


@pytest.fixture
def user() -> User:
    return UserFactory.create()


@pytest.fixture
def headers(user: User) -> dict[str, str]:
    return bearer(user)


def error_of(answer: Any, status: Any) -> Any:
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/json"
    body = answer.json()
    assert set(body) == {"error"}
    assert set(body["error"]) <= {"code", "message", "fields"}
    assert isinstance(body["error"]["message"], str)
    return body["error"]


@pytest.mark.parametrize("path", NOWHERE)
def test_addresses_that_lead_nowhere(client: Client, headers: dict[str, str], path: str) -> None:
    assert error_of(client.get(path, headers=headers), 404)["code"] == "not_found"
    assert error_of(client.post(path, headers=headers), 404)["code"] == "not_found"


@pytest.mark.parametrize("method", ["put", "delete", "options", "patch"])
def test_methods_that_a_route_does_not_have(client: Client, headers: dict[str, str], method: Any) -> None:
    answer = getattr(client, method)(GOALS, headers=headers)
    assert error_of(answer, 405)["code"] == "method_not_allowed"
    assert "GET" in answer["Allow"]


def test_bodies_that_are_not_json(client: Client, headers: dict[str, str]) -> None:
    answer = client.post(GOALS, {"title": "x"}, headers=headers)
    assert error_of(answer, 415)["code"] == "unsupported_media_type"


@pytest.mark.parametrize("body", [b"{", b"", b"\xff", b'{"title": NaN}', b"[" * 100_000, b'{"title": "x"} y'])
def test_broken_json(client: Client, headers: dict[str, str], body: Any) -> None:
    answer = client.post(GOALS, body, content_type="application/json", headers=headers)
    assert error_of(answer, 400)["code"] in ("parse_error", "invalid")


@pytest.mark.parametrize("body", ["[]", "7", "null", '"text"'])
def test_json_that_is_no_object(client: Client, headers: dict[str, str], body: Any) -> None:
    answer = client.post(GOALS, body, content_type="application/json", headers=headers)
    assert error_of(answer, 400)["code"] == "invalid"


def test_a_body_that_is_too_large(client: Client, headers: dict[str, str], settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    answer = client.post(GOALS, {"title": "x" * 1000}, content_type="application/json", headers=headers)
    assert error_of(answer, 413)["code"] == "too_large"


def test_an_unknown_field_is_named(client: Client, headers: dict[str, str]) -> None:
    answer = client.post(GOALS, {"title": "x", "colour": "red"}, content_type="application/json", headers=headers)
    error = error_of(answer, 400)
    assert error["code"] == "invalid"
    assert list(error["fields"]) == ["colour"]
    assert "colour" in error["message"]


def test_a_missing_field_is_named(client: Client, headers: dict[str, str]) -> None:
    error = error_of(client.post(GOALS, {}, content_type="application/json", headers=headers), 400)
    assert list(error["fields"]) == ["title"]


@pytest.mark.parametrize("title", [7, True, None, ["x"], {"a": 1}])
def test_text_must_be_text(client: Client, headers: dict[str, str], title: Any) -> None:
    answer = client.post(GOALS, {"title": title}, content_type="application/json", headers=headers)
    assert list(error_of(answer, 400)["fields"]) == ["title"]


@pytest.mark.parametrize("title", ["", "   ", "x" * 5000])
def test_what_a_service_refuses(client: Client, headers: dict[str, str], title: Any) -> None:
    answer = client.post(GOALS, {"title": title}, content_type="application/json", headers=headers)
    assert error_of(answer, 400)["code"] in ("blank", "too_long")


def test_what_a_client_accepts_does_not_change_the_answer(client: Client, headers: dict[str, str]) -> None:
    answer = client.get(GOALS, headers={**headers, "Accept": "text/html"})
    assert answer["Content-Type"] == "application/json"
    assert answer.status_code == 200


@pytest.mark.parametrize(
    ("problem", "status", "code"),
    [(OperationalError("gone"), 503, "unavailable"), (KeyError("x"), 500, "server_error")],
)
def test_our_own_faults_are_logged_and_say_nothing(
    client: Client,
    headers: dict[str, str],
    user: User,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    problem: Exception,
    status: Any,
    code: str,
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise problem

    monkeypatch.setattr(goal_routes, "page", fail)
    client.raise_request_exception = False
    with caplog.at_level(logging.ERROR):
        error = error_of(client.get(GOALS, headers=headers), status)
    assert error["code"] == code
    assert "gone" not in error["message"]
    assert any(record.exc_info for record in caplog.records)


def test_ids_may_be_written_in_capitals(client: Client, headers: dict[str, str], user: User) -> None:
    goal = GoalFactory(user=user)
    assert client.get(f"{GOALS}/{str(goal.pk).upper()}", headers=headers).json()["id"] == str(goal.pk)


def test_whatever_ends_a_request_its_user_has_the_share_again(
    client: Client, headers: dict[str, str], user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*args: Any, **kwargs: Any) -> None:
        raise SystemExit

    monkeypatch.setattr(goal_routes, "page", die)
    with pytest.raises(SystemExit):
        client.get(GOALS, headers=headers)
    assert user.pk not in shares.requests._taken
