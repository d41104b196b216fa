"""T2, T16: whatever a caller writes into a cursor, a field or a cookie, the answer is never a 500."""

import base64
import itertools
import json
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern

from tests.factories import ApprovalFactory, UserFactory, bearer
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
    gets = [route for route in own_routes() if hasattr(view_of(route), "get") and not str(route.name).endswith("events")]
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
