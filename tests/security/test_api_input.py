"""T2, T16: whatever a caller writes into a cursor, a field or a cookie, the answer is never a 500."""

import base64
import itertools
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern

from tests.factories import ApprovalFactory, bearer
from tests.security.test_api_ownership import BODIES, Person, address, own_routes, person, view_of

pytestmark = pytest.mark.django_db(transaction=True)

VALUES = ["", "x", "\x00", "\ud800", 7, -1, 10**30, 1e300, True, {}, [], "0001-01-01T00:00:00+23:59"]
KEYS = [
    "2026-01-01T00:00:00Z",
    "00000000-0000-7000-8000-000000000000",
]


def cursor(*values: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(values).encode()).decode().rstrip("=")


def cursors() -> list[str]:
    pairs = [*itertools.permutations(KEYS), *itertools.product(KEYS[:1], VALUES)]
    return ["", "=", "\x00", *(cursor(each) for each in [*VALUES, *KEYS]), *(cursor(*pair) for pair in pairs)]


def lists(caller: Person) -> list[str]:
    gets = [
        route
        for route in own_routes()
        if hasattr(view_of(route), "get")
        and not str(route.name).endswith(("events", "attachment", "thumbnail", "file", "zip"))
    ]
    addresses = [address(route, caller.ids) for route in gets]
    return [each for each in addresses if "results" in Client().get(each, headers=bearer(caller.user)).json()]


def test_no_cursor_breaks_a_list() -> None:
    alice = person()
    headers, found = bearer(alice.user), lists(alice)
    assert len(found) >= 7
    answers = {
        (each, text): Client(raise_request_exception=False).get(each, {"cursor": text}, headers=headers).status_code
        for each, text in itertools.product(found, cursors())
    }
    assert {key: status for key, status in answers.items() if status not in (200, 400)} == {}


def test_approvals_are_read_page_by_page() -> None:
    alice = person()
    run = alice.user.threads.exclude(runs=None).get().runs.get()
    ApprovalFactory.create_batch(2, action__run=run)
    seen, place = [], "/api/v1/approvals?limit=1"
    while place:
        answer = Client().get(place, headers=bearer(alice.user)).json()
        seen += [each["id"] for each in answer["results"]]
        place = answer["next"]
    assert len(seen) == len(set(seen)) == 3


def bodies(caller: Person) -> list[tuple[str, str, dict[str, Any]]]:
    """Each route that takes a body, with one that it would take."""
    routes = [route for route in own_routes() if route.name != "logout"]
    taking = [(route, method) for route in routes for method in ("post", "patch") if hasattr(view_of(route), method)]
    return [(address(route, caller.ids), method, _body(route, method)) for route, method in taking]


def _body(route: URLPattern, method: str) -> dict[str, Any]:
    return BODIES.get((str(route.name), method.upper()), {})


STRANGE = ["\ud800", "\x00", "x" * 100_000, "é\udfff\x1b[2J\u202e"]


def test_no_name_and_no_value_of_a_field_breaks_a_route() -> None:
    alice = person()
    client, headers = Client(raise_request_exception=False), bearer(alice.user)
    broken = []
    for (place, method, body), text in itertools.product(bodies(alice), STRANGE):
        for given in ({**body, text: 1}, dict.fromkeys(body, text), dict.fromkeys(body, 10**30)):
            data = json.dumps(given)
            answer = getattr(client, method)(place, data, content_type="application/json", headers=headers)
            if answer.status_code >= 500 or (given.keys() - body and answer.status_code != 400):
                broken.append((place, method, given, answer.status_code))
    assert broken == []


@pytest.mark.parametrize("text", STRANGE)
def test_signing_in_says_what_is_wrong_with_any_field(text: str) -> None:
    client = Client(raise_request_exception=False)
    for given in ({text: 1}, {"email": text, "password": text}, {"email": "a@b.cd", "password": "x", "device": text}):
        answer = client.post("/api/v1/auth/login", json.dumps(given), content_type="application/json")
        assert answer.status_code in (400, 401), given
        assert "error" in answer.json()


@pytest.mark.parametrize("key", ["\x00abcdefghij", "é" * 40, "x" * 4000, "a b c d e f g h"])
@pytest.mark.parametrize("place", ["/", "/accounts/login/", "/admin/"])
def test_a_session_key_that_cannot_be_one_is_none(key: str, place: str) -> None:
    client = Client(raise_request_exception=False)
    client.cookies["sessionid"] = key
    assert client.get(place).status_code in (200, 302)
