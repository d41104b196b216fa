"""Histories that grow, are read anew or go on differently are sent as a fresh run would send them."""

from collections.abc import Iterator

import pytest

from agents.providers.anthropic_body import Sent
from agents.providers.base import Endpoint, ModelRequest, Provider, Reply
from agents.providers.catalog import connect
from agents.providers.translated import Translated
from memory.messages import Message, ToolResult, ToolUse, assistant, tool, user
from tests.agents.providers.conftest import KEY
from tests.llm_server import LLMServer, Reply as Said
from tests.llm_steps import text_of
from tools.cancel import CancelToken

TURNS = 150


def _turn(number: int) -> list[Message]:
    call = ToolUse(id=f"c{number}", name="read_file", arguments={"lines": number, "path": "ä" * 300})
    return [
        user(f"Question {number}"),
        assistant("", [call]),
        tool(ToolResult(id=call.id, content="x" * number or "-")),
    ]


def _anew(messages: list[Message]) -> list[Message]:
    """Equal messages, as another run reads them from the database."""
    return [Message.model_validate_json(message.model_dump_json()) for message in messages]


@pytest.fixture(params=["compatible", "anthropic"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def other(server: LLMServer, kind: str) -> Iterator[Provider]:
    connected = connect(Endpoint(kind, server.url, KEY, anywhere=True))
    yield connected
    connected.close()


def _kept(memo: dict[str, object]) -> Translated:
    (kept,) = memo.values()
    history = kept.history if isinstance(kept, Sent) else kept
    assert isinstance(history, Translated)
    return history


def _sent(server: LLMServer, provider: Provider, messages: list[Message], memo: dict[str, object] | None) -> bytes:
    server.script([Said("ok")])
    *_, reply = provider.stream(ModelRequest("m", "Be brief.", messages, memo=memo), CancelToken())
    assert isinstance(reply, Reply)
    return server.requests.pop().raw


def test_each_request_of_a_growing_history_is_the_one_a_fresh_run_would_send(
    server: LLMServer, provider: Provider, other: Provider
) -> None:
    messages: list[Message] = []
    memo: dict[str, object] = {}
    for number in range(TURNS):
        messages += _turn(number)
        kept = _sent(server, provider, messages, memo)
        if number % 7 == 0:
            messages = messages[:-6] + _anew(messages[-6:])
    assert kept == _sent(server, other, messages, None)
    assert len(_kept(memo).pieces) < TURNS / 4, "small pieces grow together"


def test_messages_that_are_read_anew_are_not_kept_twice(server: LLMServer, provider: Provider) -> None:
    memo: dict[str, object] = {}
    messages = [message for number in range(TURNS) for message in _turn(number)]
    _sent(server, provider, messages, memo)
    again = _anew(messages)
    _sent(server, provider, again, memo)
    kept = [message for piece in _kept(memo).pieces for message in piece.messages]
    assert all(old is new for old, new in zip(kept, again, strict=True))


@pytest.mark.parametrize("place", [0, 1, 63, 64, 200, 3 * TURNS - 3])
def test_a_history_that_goes_on_differently_is_sent_as_it_now_is(
    server: LLMServer, provider: Provider, other: Provider, place: int
) -> None:
    memo: dict[str, object] = {}
    messages = [message for number in range(TURNS) for message in _turn(number)]
    _sent(server, provider, messages, memo)
    start = place - place % 3
    for changed in (
        messages[:start],
        [*messages[:start], user("Other words"), *messages[start + 3 :]],
        messages[start:],
    ):
        if changed:
            assert _sent(server, provider, changed, memo) == _sent(server, other, changed, None)


def test_a_request_longer_than_any_buffer_arrives_whole(server: LLMServer, provider: Provider) -> None:
    texts = [f"{number} " + "long " * 200_000 for number in range(9)]
    _sent(server, provider, [user("hi")], None)
    server.script([Said("ok")])
    list(provider.stream(ModelRequest("m", "", [user(text) for text in texts]), CancelToken()))
    assert "\n\n".join(text_of(message["content"]) for message in server.requests[-1].messages) == "\n\n".join(texts)
    assert "transfer-encoding" not in server.requests[-1].headers, "some servers want to know the length"
