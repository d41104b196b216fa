"""What comes into a thread from anybody: never lost silently, and seen by whoever looks on."""

from collections.abc import Callable

import pytest
from pytest_django.fixtures import Settings

from agents import services
from goals.models import Goal
from memory.models import AgentRun
from tests.factories import GoalFactory
from tests.llm_script import Reply
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]


def test_a_message_without_an_id_is_refused_where_the_queue_is_full(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    llm.script([Reply(text="Hello")])
    say("Hi")
    settings.WAYMARK_MAX_QUEUED_PER_USER = 1
    services.send_message(GoalFactory.create(user=goal.user).thread, "This one waits")
    with pytest.raises(services.Refused) as refused:
        services.send_message(goal.thread, "One too many")
    assert refused.value.code == "too_many_queued"
