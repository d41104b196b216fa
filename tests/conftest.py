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

from collections.abc import Iterator
from uuid import UUID

import pytest
from asgiref.sync import SyncToAsync
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from agents.engine import bell
from goals.models import Goal
from memory import pool
from tests import emptying
from tests.factories import GoalFactory, UserFactory, bearer
from tests.llm_server import LLMServer


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """The hot path's connections are closed before the database is dropped, and that of asgiref's own thread, where
    the views of an AsyncClient run: for test clients nothing ends with the request."""
    with pytest.MonkeyPatch.context() as patch:
        emptying.use(patch)
        yield
    pool.close()
    SyncToAsync.single_thread_executor.submit(connections.close_all).result()


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
