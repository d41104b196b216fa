"""What every test stands on: real servers, Django set up on them, no network.

It happens when this file is imported, before any other conftest: those may then import models at their top.
"""

import os

from tests import network, servers

servers.start()

import django

django.setup()
network.block()

# The processes of pytest-xdist inherit the environment. With this name in it, pytest-django would read the settings
# there before this file gives each process a Redis of its own.
del os.environ["DJANGO_SETTINGS_MODULE"]

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from uuid import UUID

import pytest
from asgiref.sync import SyncToAsync
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from hypothesis import settings as hypothesis_settings
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

from agents.engine import bell
from agents.providers import catalog
from goals.models import Goal
from memory import pool
from tests import emptying
from tests.factories import GoalFactory, UserFactory, bearer
from tests.llm_server import LLMServer

WAITING = ("browser", "faults", "programs")

# A machine that has other things to do is no reason for a test to fail.
hypothesis_settings.register_profile("unhurried", deadline=None)
hypothesis_settings.load_profile("unhurried")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Let no bytes name a test: packed ones hold a time, and processes that share the tests must agree on names."""
    return argname if isinstance(val, bytes) else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Processes of pytest-xdist take a file each. Tests of whole programs mostly wait, and others only compute, so
    those are set between them; a third is left for the end, where short files let no process wait for another."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = [path for path, file in files.items() if any(map(_waits, file))]
    computing = [path for path in files if path not in waiting]
    portion = round(len(computing) * 2 / 3 / max(len(waiting), 1))
    rest = iter(computing)
    mixed = [path for each in waiting for path in (each, *islice(rest, portion))]
    items[:] = [item for path in (*mixed, *rest) for item in files[path]]


def _waits(item: pytest.Item) -> bool:
    return any(map(item.get_closest_marker, WAITING))


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """Emptied in our own way. The hot path's connections are closed before it is dropped, and that of asgiref's own
    thread, where the views of an AsyncClient run: for test clients nothing ends with the request."""
    with pytest.MonkeyPatch.context() as patch:
        emptying.use(patch)
        yield
    pool.close()
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


@pytest.fixture(scope="session", autouse=True)
def passwords_hashed_quickly() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PBKDF2PasswordHasher, "iterations", 1_000)
        yield


@pytest.fixture(scope="session", autouse=True)
def static_files_found_once() -> Iterator[None]:
    """Every test client loads all middleware anew, and WhiteNoise's looks for each static file each time."""
    find, found = WhiteNoiseMiddleware.add_files_from_finders, dict[str, StaticFile]()

    def find_once(middleware: WhiteNoiseMiddleware) -> None:
        if not found:
            find(middleware)
            found.update(middleware.files)
        middleware.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", find_once)
        yield


@pytest.fixture(scope="session")
def model_server() -> Iterator[LLMServer]:
    with LLMServer() as server:
        yield server


@pytest.fixture
def llm(model_server: LLMServer) -> LLMServer:
    model_server.reset()
    return model_server


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The doorbell without a worker behind it: the runs it was rung for."""
    rung: list[UUID] = []
    monkeypatch.setattr(bell, "ring", rung.append)
    return rung


@pytest.fixture
def user() -> User:
    return UserFactory.create()


@pytest.fixture
def goal(user: User) -> Goal:
    return GoalFactory.create(user=user)


@pytest.fixture
def api(user: User) -> Client:
    """A device of the user."""
    return Client(headers=bearer(user))


@pytest.fixture
def lives_at(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Have the server of a kind at another address than its own."""

    def lives_at(kind: str, address: str) -> None:
        kinds = [
            replace(each, default_base_url=address) if each.kind == kind else each for each in catalog.known_kinds()
        ]
        monkeypatch.setattr(catalog, "_KINDS", tuple(kinds))
        monkeypatch.setattr(catalog, "_BY_NAME", {each.kind: each for each in kinds})

    return lives_at
