"""Thoughts and seals that vendors of Chat Completions want back, over real HTTP against a server that refuses to go on
without them (case PRV-08)."""

from collections.abc import Iterator

import pytest

from agents.providers import openai as adapter
from agents.providers.base import Endpoint, ModelRequest, ProviderError
from agents.providers.catalog import connect
from memory.messages import BLOCKS, Message, Text, Thinking, ToolResult, ToolUse, assistant, tool, user
from tests.agents.providers.conftest import KEY, Ask, answered
from tests.agents.providers.test_thoughts import again
from tests.llm_reasoning import Wants
from tests.llm_server import LLMServer, Reply, Status
from tools.cancel import CancelToken

CALL = ("read_file", {"path": "a.txt"})
PLAN = "Plan:  two  spaces\n\n— ok"
ELSEWHERE = "elsewhere.example"
FOREIGN = [
    assistant("", [ToolUse(id="f1", name="read_file", arguments={}, signature='{"x":1}', maker=ELSEWHERE)]),
    tool(ToolResult(id="f1", content="what it says")),
]


@pytest.fixture(autouse=True)
def nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "_manners", {})


@pytest.fixture(params=["compatible", "openai"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def refusals(server: LLMServer) -> Iterator[list[str]]:
    """What the server has refused, which these tests expect."""
    yield server.violations
    server.violations.clear()


@pytest.mark.parametrize("what", ["thoughts", "seals"])
def test_prv_08_what_a_model_has_thought_goes_back_with_its_calls(server: LLMServer, ask: Ask, what: str) -> None:
    server.chat.wants = Wants(what)  # type: ignore[arg-type]
    server.script([Reply(calls=[CALL, CALL], thinking=PLAN)] * 2 + [Reply("Done.", thinking="Hm.")] + [Reply("Bye.")])
    messages = [user("hi")]
    for _ in range(2):
        messages += answered(again(ask(*messages).message))
    messages += [again(ask(*messages).message), user("Thanks")]
    assert ask(*messages).text == "Bye."
    for before, after in zip(server.requests, server.requests[1:], strict=False):
        assert after.raw.startswith(before.raw.rstrip(b"]}")), "and the prefix stays the same"


@pytest.mark.parametrize("what", ["thoughts", "seals"])
def test_prv_08_calls_of_another_model_are_taken_with_a_word_in_the_place_of_its_thoughts(
    server: LLMServer, ask: Ask, refusals: list[str], what: str
) -> None:
    """Also of the same one, when it did not think, or before its thoughts were kept."""
    server.chat.wants = Wants(what)  # type: ignore[arg-type]
    server.script([Reply(calls=[CALL], thinking=PLAN), Reply("Done.")])
    messages = [user("hi"), *FOREIGN]
    messages += answered(again(ask(*messages).message))
    assert ask(*messages).text == "Done."
    assert len(refusals) == 1, "and it is remembered"
    assert [message["role"] for message in server.requests[-1].messages[2:]] == ["assistant", "tool"] * 2
    assert b"what it says" in server.requests[-1].raw


def test_prv_08_a_server_that_does_not_know_the_field_is_asked_without(
    server: LLMServer, ask: Ask, refusals: list[str]
) -> None:
    server.chat.wants = Wants("nothing")
    server.script([Reply(calls=[CALL], thinking=PLAN)] * 2 + [Reply("Done.")])
    messages = [user("hi")]
    for _ in range(2):
        messages += answered(again(ask(*messages).message))
    assert ask(*messages).text == "Done."
    assert len(refusals) == 1


@pytest.mark.parametrize(
    "words",
    ["reasoning_content must be passed back", "property 'reasoning_content' is unsupported", "thought signature"],
)
def test_i16_nothing_is_sent_again_that_would_be_the_same(server: LLMServer, ask: Ask, words: str) -> None:
    server.script([Status(400, body={"error": {"message": words}}), Reply("ok")])
    with pytest.raises(ProviderError, match="refused"):
        ask()
    assert ask().text == "ok"
    assert len(server.requests) == 2


@pytest.mark.parametrize("asked", ["compatible", "openai", "anthropic", "ollama", "openrouter"])
def test_thoughts_and_seals_go_to_their_maker_only(server: LLMServer, asked: str) -> None:
    thought = Thinking(text=PLAN, maker=ELSEWHERE)
    said = [Message(role="assistant", blocks=(thought, Text(text="Yes?"))), user("more"), *FOREIGN]
    provider = connect(Endpoint(asked, server.url, KEY, anywhere=True))
    server.script([Status(400, body={"error": {"message": "enough"}})])
    with pytest.raises(ProviderError):
        list(provider.stream(ModelRequest("m", "", [user("hi"), *said]), CancelToken()))
    provider.close()
    for request in server.requests:
        assert b"two  spaces" not in request.raw
        assert b"extra_content" not in request.raw


def test_a_seal_that_is_longer_than_an_answer_is_not_kept(server: LLMServer) -> None:
    server.chat.wants = Wants("seals")
    server.script([Reply(calls=[CALL])])
    provider = connect(Endpoint("compatible", server.url, KEY, answer_length=40, anywhere=True))
    *_, reply = provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())
    provider.close()
    assert [call.signature for call in reply.message.calls] == [None]  # type: ignore[union-attr]


def test_blocks_that_were_stored_before_are_read() -> None:
    stored = b"""[{"type":"thinking","text":"Hm.","signature":null,"redacted":false,"maker":""},
        {"type":"tool_use","id":"c1","name":"now","arguments":{},"problem":null}]"""
    assert BLOCKS.validate_json(stored) == (Thinking(text="Hm."), ToolUse(id="c1", name="now", arguments={}))
