"""Rows for tests, made through services where a service makes them."""

import hashlib
from typing import Any
from uuid import UUID

import factory
from django.contrib.auth.models import User
from factory.django import DjangoModelFactory

from agents import services, tokens
from agents.models import AgentTask, CallStatus, DeviceToken, ModelCall, ModelConnection, UserAgent
from goals.models import Goal
from goals.services import create_goal
from memory.ids import new_id
from memory.models import AgentRun, HistoryEntry, Note, RunStatus, Source, Thread, ThreadMessage
from tools.base import Effect, Reversal, Risk
from tools.models import ActionStatus, AgentAction

PASSWORD = "a long enough pass phrase"


class UserFactory(DjangoModelFactory[User]):
    """Its password is PASSWORD."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = factory.Sequence(lambda n: f"person{n}")
    email = factory.LazyAttribute(lambda user: f"{user.username}@example.org")

    @classmethod
    def _create(cls, model_class: type[User], *args: Any, **kwargs: Any) -> User:
        password = kwargs.pop("password", PASSWORD)
        if kwargs.pop("staff", False):
            return model_class._default_manager.create_superuser(*args, password=password, **kwargs)
        return model_class._default_manager.create_user(*args, password=password, **kwargs)


class GoalFactory(DjangoModelFactory[Goal]):
    class Meta:
        model = Goal

    user = factory.SubFactory(UserFactory)
    title = factory.Sequence(lambda n: f"Goal {n}")

    @classmethod
    def _create(cls, model_class: type[Goal], *args: Any, **kwargs: Any) -> Goal:
        return create_goal(**kwargs)


class ThreadFactory(DjangoModelFactory[Thread]):
    """The thread of a new goal."""

    class Meta:
        model = Thread

    user = factory.SubFactory(UserFactory)

    @classmethod
    def _create(cls, model_class: type[Thread], *args: Any, **kwargs: Any) -> Thread:
        return GoalFactory(user=kwargs["user"]).thread


class AgentRunFactory(DjangoModelFactory[AgentRun]):
    """A run that has ended, so that a thread may have many."""

    class Meta:
        model = AgentRun

    thread = factory.SubFactory(ThreadFactory)
    status = RunStatus.SUCCEEDED


class ThreadMessageFactory(DjangoModelFactory[ThreadMessage]):
    class Meta:
        model = ThreadMessage

    thread = factory.SubFactory(ThreadFactory)
    source = Source.USER
    content = factory.Sequence(lambda n: f"Message {n}")


class HistoryEntryFactory(DjangoModelFactory[HistoryEntry]):
    class Meta:
        model = HistoryEntry

    thread = factory.SubFactory(ThreadFactory)
    seq = factory.Sequence(lambda n: n + 1)
    role = "user"
    blocks = factory.LazyFunction(lambda: [{"type": "text", "text": "hello"}])


class NoteFactory(DjangoModelFactory[Note]):
    class Meta:
        model = Note

    thread = factory.SubFactory(ThreadFactory)
    user = factory.SelfAttribute("thread.user")
    title = factory.Sequence(lambda n: f"Note {n}")


class AgentActionFactory(DjangoModelFactory[AgentAction]):
    class Meta:
        model = AgentAction

    id = factory.LazyFunction(new_id)
    run = factory.SubFactory(AgentRunFactory)
    thread = factory.SelfAttribute("run.thread")
    user = factory.SelfAttribute("run.thread.user")
    step = 1
    position = factory.Sequence(lambda n: n)
    call_id = factory.Sequence(lambda n: f"call_{n}")
    tool = "create_note"
    effect = Effect.LOCAL
    risk = Risk.ALLOWED
    reversal = Reversal.UNDOABLE
    arguments = factory.LazyFunction(lambda: {"title": "Shoes"})
    status = ActionStatus.DONE


class ModelCallFactory(DjangoModelFactory[ModelCall]):
    class Meta:
        model = ModelCall

    run = factory.SubFactory(AgentRunFactory)
    step = 1
    provider = "demo"
    model = "demo"
    status = CallStatus.DONE


class AgentTaskFactory(DjangoModelFactory[AgentTask]):
    class Meta:
        model = AgentTask

    parent = factory.SubFactory(ThreadFactory)
    user = factory.SelfAttribute("parent.user")
    thread = factory.LazyAttribute(lambda task: services.open_thread(task.user, AgentTask.kind()))
    title = factory.Sequence(lambda n: f"Task {n}")
    instructions = "Look it up."


class UserAgentFactory(DjangoModelFactory[UserAgent]):
    class Meta:
        model = UserAgent

    user = factory.SubFactory(UserFactory)

    @classmethod
    def _create(cls, model_class: type[UserAgent], *args: Any, **kwargs: Any) -> UserAgent:
        return services.assistant_of(kwargs["user"])


class ModelConnectionFactory(DjangoModelFactory[ModelConnection]):
    class Meta:
        model = ModelConnection

    user = factory.SubFactory(UserFactory)
    kind = "openai"
    model = "gpt-5-mini"
    sealed_key = "sealed-canary"


class DeviceTokenFactory(DjangoModelFactory[DeviceToken]):
    class Meta:
        model = DeviceToken

    user = factory.SubFactory(UserFactory)
    name = "Phone"
    digest = factory.Sequence(lambda n: hashlib.sha256(str(n).encode()).digest())


def bearer(user: User) -> dict[str, str]:
    """Headers of a device of `user`."""
    return {"Authorization": f"Bearer {tokens.issue(user)}"}


def nobody() -> UUID:
    """An id that belongs to nothing."""
    return new_id()
