"""What a person sees when a page cannot be made."""

import psycopg
import pytest
from django.contrib.auth.models import User
from django.db import InterfaceError, OperationalError
from django.test import Client

from tests.factories import UserFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser() -> Client:
    user: User = UserFactory.create()
    client = Client(raise_request_exception=False)
    client.force_login(user)
    return client


@pytest.mark.parametrize(
    "problem", [OperationalError("gone"), InterfaceError("closed"), psycopg.OperationalError("gone")]
)
@pytest.mark.parametrize(
    "place", ["goals.jobs.jobs", "goals.middleware.assistant_of", "django.contrib.auth.middleware.get_user"]
)
def test_a_database_that_is_away_is_no_fault_of_ours(
    browser: Client, monkeypatch: pytest.MonkeyPatch, problem: Exception, place: str
) -> None:
    monkeypatch.setattr(place, _raising(problem))
    answer = browser.get("/jobs/")
    assert answer.status_code == 503
    assert answer["Retry-After"] == "5"
    assert "The database does not answer" in answer.content.decode()


def test_a_disk_that_is_full_is_named(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    told = OperationalError("could not extend file")
    told.__cause__ = psycopg.errors.DiskFull()
    for problem, words in (
        (told, "The disk of the database is full."),
        (OperationalError("gone"), "of this server is"),
    ):
        monkeypatch.setattr("goals.jobs.jobs", _raising(problem))
        assert words in browser.get("/jobs/").text
        monkeypatch.setattr("memory.disk.free", lambda folder: 0)
    assert "mostly back within a minute" not in browser.get("/jobs/").text


def test_any_other_error_is_one(browser: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goals.jobs.jobs", _raising(ValueError("wrong")))
    answer = browser.get("/jobs/")
    assert answer.status_code == 500
    assert "Something broke" in answer.content.decode()


def test_a_name_that_is_not_allowed_names_the_setting() -> None:
    answer = Client().get("/", headers={"Host": "waymark.example"})
    assert answer.status_code == 400
    assert "WAYMARK_HOSTS" in answer.content.decode()


def _raising(problem: Exception) -> object:
    def run(*_: object, **__: object) -> None:
        raise problem

    return run
