"""However much a server sends, no more of it is kept and looked at than an honest one has to say."""

import time
from collections.abc import Callable, Iterable, Iterator

import pytest
from pydantic import JsonValue

from agents.providers import probe
from agents.providers.base import Endpoint, Finish, ModelRequest, ProviderError, Reply, Trouble
from agents.providers.bounds import LONGEST_ERROR, LONGEST_LIST, LONGEST_PIECE
from agents.providers.chat_calls import MOST_CALLS
from agents.providers.chat_reply import ChatReply
from agents.providers.codec import loads
from agents.providers.openai import OpenAIProvider
from memory.messages import user
from tests.agents.providers.test_transport import OK, Peer, endless
from tests.llm_server import D
from tools.cancel import CancelToken

JSON = OK + b"content-type: application/json\r\n\r\n"
STREAM = OK + b"content-type: text/event-stream\r\n\r\n"
SURPLUS = 4_000_000
"""Bytes that may be under way, in the sockets' buffers, when the reader stops."""


class Counted:
    """Bytes to send, and how many were taken of them."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.taken = 0

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.taken += len(piece)
            yield piece


def _refused(answer: Iterable[bytes]) -> ProviderError:
    with Peer([answer]) as peer, pytest.raises(ProviderError) as caught:
        _ask(peer.url)
    return caught.value


def _ask(url: str) -> None:
    provider = OpenAIProvider(Endpoint("compatible", url, anywhere=True))
    list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))


@pytest.mark.parametrize("piece", [b"[]," * 1_000, b"\\u0041" * 1_000, b"x" * 1_000])
def test_an_error_is_read_as_far_as_it_can_say_something(piece: bytes) -> None:
    answer = Counted(endless(b"HTTP/1.1 503 Sorry\r\n\r\n[", piece))
    error = _refused(answer)
    assert (error.trouble, error.status) == (Trouble.OVERLOADED, 503)
    assert answer.taken < LONGEST_ERROR + SURPLUS
    assert len(error.message) < 1_000


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        pytest.param(JSON + b"[", b"[]," * 1_000, id="a_document"),
        pytest.param(STREAM + b"data: [", b"[]," * 1_000, id="an_event"),
        pytest.param(STREAM, b"data: 1\n" * 1_000, id="lines_of_an_event"),
        pytest.param(STREAM, b": still here\n" * 1_000, id="comments"),
    ],
)
def test_a_piece_of_an_answer_that_does_not_end_is_given_up_and_not_asked_for_again(start: bytes, piece: bytes) -> None:
    answer = Counted(endless(start, piece))
    error = _refused(answer)
    assert error.trouble is Trouble.BROKEN_STREAM
    assert not error.retryable
    assert "too long" in error.message
    assert answer.taken < LONGEST_PIECE + SURPLUS


def test_a_list_of_models_that_does_not_end_is_given_up() -> None:
    answer = Counted(endless(JSON + b'{"data":[', b'{"id":"m"},' * 1_000))
    with Peer([answer]) as peer, pytest.raises(ProviderError, match="too long"):
        probe.list_models(Endpoint("compatible", peer.url, anywhere=True))
    assert answer.taken < LONGEST_LIST + SURPLUS


@pytest.mark.parametrize("body", [b"<html>", b'{"data":[', b"[" * 100_000, b"", b"\xff"])
def test_a_list_of_models_that_is_none_is_an_error_in_words(body: bytes) -> None:
    with Peer([JSON + body], hangs_up=[0]) as peer, pytest.raises(ProviderError, match="not a list of models"):
        probe.list_models(Endpoint("compatible", peer.url, anywhere=True))


def test_a_list_of_models_that_is_refused_says_why() -> None:
    refused = b'HTTP/1.1 401 No\r\ncontent-type: application/json\r\n\r\n{"error":{"message":"Wrong API key"}}'
    with Peer([refused], hangs_up=[0]) as peer, pytest.raises(ProviderError, match="Wrong API key") as caught:
        probe.list_models(Endpoint("compatible", peer.url, anywhere=True))
    assert caught.value.trouble is Trouble.BAD_KEY


def _blanks() -> Iterator[bytes]:
    """A model that says nothing, in as many pieces as it likes."""
    return (D({"content": "\n"}) for _ in range(60_000))


def _names() -> Iterator[bytes]:
    """A call whose end cannot be told, and ever another name."""
    yield D({"tool_calls": [{"index": 0, "function": {"name": "a", "arguments": '{"x":"'}}]})
    yield from (D({"tool_calls": [{"index": 0, "function": {"name": "b", "arguments": "}"}}]}) for _ in range(40_000))


def _calls() -> Iterator[bytes]:
    piece = {"function": {"name": "a", "arguments": "{}"}}
    return (D({"tool_calls": [{**piece, "index": at, "id": f"c{at}"}]}) for at in range(20_000))


@pytest.mark.parametrize("pieces", [_blanks, _names, _calls])
def test_a_piece_costs_the_same_however_many_came_before(pieces: Callable[[], Iterator[bytes]]) -> None:
    """Each took half a minute when every piece looked at all those before it; that holds up all runs of the process."""
    reply, sent = ChatReply(10_000_000), [loads(piece[6:]) for piece in pieces()]
    started = time.thread_time()
    for payload in sent:
        assert isinstance(payload, dict)
        reply.feed(payload)
        list(reply.deltas())
    assert time.thread_time() - started < 5


def _nothing() -> Iterator[dict[str, JsonValue]]:
    """New calls without name and arguments, of which none takes room."""
    for start in range(0, 100_000, 1_000):
        calls: list[JsonValue] = [{"id": f"c{start + at}", "function": {}} for at in range(1_000)]
        yield {"choices": [{"delta": {"tool_calls": calls}}]}


@pytest.mark.parametrize("together", [False, True])
def test_a_reply_of_calls_without_anything_in_them_is_over_when_there_are_too_many(together: bool) -> None:
    reply, fed = ChatReply(200_000), 0
    sent = list(_nothing())
    if together:
        sent = [{"choices": [{"delta": {"tool_calls": [call for each in sent for call in _of(each)]}}]}]
    for payload in sent:
        reply.feed(payload)
        fed += 1
        if reply.is_full:
            break
    assert fed <= MOST_CALLS // 1_000 + 1
    *_, whole = reply.end(())
    assert isinstance(whole, Reply)
    assert (len(whole.message.calls), whole.finish) == (MOST_CALLS + 1, Finish.LENGTH)


def _of(payload: dict[str, JsonValue]) -> list[JsonValue]:
    return payload["choices"][0]["delta"]["tool_calls"]  # type: ignore[index, call-overload, return-value]
