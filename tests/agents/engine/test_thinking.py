"""The one service that talks to models, where it is asked for a single answer."""

import pytest

from agents.connections import Choice
from agents.engine.thinking import ask
from agents.providers.base import Endpoint, ProviderError
from tests.llm_script import Reply, Status
from tests.llm_server import LLMServer


def choice(llm: LLMServer) -> Choice:
    return Choice(Endpoint("compatible", llm.url, "key", anywhere=True), "test-model")


def test_one_text_gets_one_answer_without_tools(llm: LLMServer) -> None:
    llm.script([Reply(text="A run in May")])
    reply = ask(choice(llm), "Give it a title.", "I want to run a half marathon in May")
    assert reply.message.text == "A run in May"
    assert "tools" not in llm.requests[0].body


def test_a_failure_is_told_to_the_caller(llm: LLMServer) -> None:
    llm.script([Status(500, body={"error": {"message": "no"}})])
    with pytest.raises(ProviderError):
        ask(choice(llm), "Give it a title.", "Hi")
