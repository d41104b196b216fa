"""What every adapter keeps, over real HTTP against a strict server that speaks its dialect: answers."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.providers import probe
from agents.providers.base import (
    Endpoint,
    Finish,
    ModelRequest,
    Provider,
    Reply as Answered,
    TextDelta,
    ThinkingDelta,
)
from agents.providers.catalog import connect
from agents.providers.pool import lease
from memory.messages import Text, Thinking, ToolResult, tool, user
from tests.agents.providers.conftest import KEY, KINDS, READ_FILE, SERVERS, Ask, answered
from tests.llm_server import Hang, LLMServer, Reply, Status
from tools.cancel import Cancelled, CancelToken

pytestmark = pytest.mark.parametrize("kind", KINDS)
A, B = ("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})


def test_text_is_streamed_and_counted(server: LLMServer, ask: Ask, kind: str) -> None:
    server.script([Reply("Good morning to you", usage=(11, 4, 8))])
    heard = ask()
    assert heard.text == "Good morning to you"
    usage = heard.reply.usage
    assert (heard.reply.finish, usage.input_tokens, usage.output_tokens) == (Finish.STOP, 11, 4)
    assert usage.cached_tokens == (None if kind == "ollama" else 8), "Ollama does not say"


@pytest.mark.parametrize("size", [1, 2, 3, 7, None])
@pytest.mark.parametrize("calls", [[A], [A, B]], ids=["one", "two"])
def test_calls_are_put_together_however_they_are_cut(
    server: LLMServer, ask: Ask, size: int | None, calls: list[tuple[str, dict[str, str]]]
) -> None:
    server.script([Reply("Let me see.", calls=calls, chunk_size=size), Reply("Seen.")])
    heard = ask()
    assert [(name, arguments) for _, name, arguments in heard.calls] == calls
    assert (heard.text, heard.reply.finish) == ("Let me see.", Finish.TOOL_CALLS)
    assert ask(user("hi"), *answered(heard.message)).text == "Seen."


def test_pieces_come_out_before_the_next_is_there(server: LLMServer, provider: Provider) -> None:
    server.script([Hang(30, Reply("Once upon", thinking="Hm"))])
    stream = provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())
    assert next(stream) == ThinkingDelta("Hm")
    assert "".join(chunk.text for chunk in itertools.islice(stream, 1) if isinstance(chunk, TextDelta)).strip()


def test_an_answer_that_is_not_streamed_is_understood(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("All at once.", calls=[A, B], thinking="Hm.", usage=(7, 3), is_whole=True)])
    heard = ask()
    assert (heard.text, heard.thinking, heard.reply.finish) == ("All at once.", "Hm.", Finish.TOOL_CALLS)
    assert [(name, arguments) for _, name, arguments in heard.calls] == [A, B]
    assert (heard.reply.usage.input_tokens, heard.reply.usage.output_tokens) == (7, 3)


def test_thinking_becomes_a_block_before_the_text(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("Yes.", thinking="Is it so?")])
    heard = ask()
    thought, said = heard.message.blocks
    assert isinstance(thought, Thinking)
    assert (heard.thinking, thought.text, said) == ("Is it so?", "Is it so?", Text(text="Yes."))


def test_a_refusal_says_that_it_is_one(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("Well", finish="content_filter")])
    heard = ask()
    assert (heard.text, heard.reply.finish) == ("Well", Finish.REFUSED)


def test_an_answer_that_was_too_long_says_so(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("And so on and", finish="length")])
    assert ask().reply.finish is Finish.LENGTH


@pytest.mark.parametrize("after", [(), Reply("Once upon")], ids=["silent", "talking"])
def test_cancelling_ends_a_blocked_read_at_once(server: LLMServer, ask: Ask, after: Any) -> None:
    server.script([Hang(30, after), Reply("next")])
    cancel = CancelToken()
    threading.Timer(0.2, cancel.cancel, ["You stopped it."]).start()
    started = time.monotonic()
    with pytest.raises(Cancelled, match="You stopped it"):
        ask(cancel=cancel)
    assert time.monotonic() - started < 10
    assert ask().text == "next"


def test_cancelling_between_tokens_stops_the_stream(server: LLMServer, provider: Provider) -> None:
    server.script([Reply("one two three four", gap=0.02)])
    cancel = CancelToken()
    stream = provider.stream(ModelRequest("m", "", [user("hi")]), cancel)
    next(stream)
    cancel.cancel("enough")
    with pytest.raises(Cancelled):
        list(stream)


def test_a_cancelled_token_makes_no_call(server: LLMServer, ask: Ask) -> None:
    cancel = CancelToken()
    cancel.cancel("before it began")
    with pytest.raises(Cancelled):
        ask(cancel=cancel)
    assert not server.requests


def test_the_connection_is_reused_and_the_prefix_stays_the_same(server: LLMServer, kind: str) -> None:
    messages = [user("hi")]
    with lease(Endpoint(kind, server.url, KEY, anywhere=True)) as provider:
        for turn in range(3):
            server.script([Reply(calls=[A], thinking="Hm")])
            *_, reply = provider.stream(ModelRequest("m", "System.", messages, [READ_FILE]), CancelToken())
            call = reply.message.calls[0]  # type: ignore[union-attr]
            messages += [reply.message, tool(ToolResult(id=call.id, content=f"result {turn}"))]  # type: ignore[union-attr]
            messages += [user("also")] if turn else []
    bodies = [request.raw for request in server.requests]
    for earlier, later in itertools.pairwise(bodies):
        assert later.startswith(earlier.rstrip(b"]}"))


def test_a_connection_that_has_served_a_run_serves_the_next(kind: str) -> None:
    """Who runs an agent takes the reply and does not look whether anything follows."""
    with SERVERS.get(kind, LLMServer)() as server:
        server.always(Reply("ok", calls=[A]))
        for _ in range(3):
            with lease(Endpoint(kind, server.url, KEY, anywhere=True)) as provider:
                stream = provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())
                assert next(chunk for chunk in stream if isinstance(chunk, Answered)).message.text == "ok"
        assert server.connections == 1


class Late(CancelToken):
    """Set at the very end of a call, when the answer is there."""

    @contextlib.contextmanager
    def on_cancel(self, callback: Callable[[], None]) -> Iterator[None]:
        with super().on_cancel(callback):
            yield
            self.cancel("too late")


def test_a_connection_that_may_still_be_cut_serves_no_other_run(server: LLMServer, kind: str) -> None:
    endpoint = Endpoint(kind, server.url, KEY, anywhere=True)
    server.script([Reply("ok")])
    with lease(endpoint) as provider:
        cut = provider._client  # type: ignore[attr-defined]
        list(provider.stream(ModelRequest("m", "", [user("hi")]), Late()))
    with lease(endpoint) as provider:
        assert provider._client is not cut  # type: ignore[attr-defined]


def test_each_request_carries_the_key_and_what_the_sdk_says_of_itself(server: LLMServer, ask: Ask, kind: str) -> None:
    server.script([Reply("ok"), Reply("ok")])
    ask()
    ask()
    first, second = (request.headers for request in server.requests)
    assert first == second
    assert first["authorization"] == f"Bearer {KEY}"
    assert first["content-type"] == "application/json"
    assert ("anthropic" if kind == "anthropic" else "openai") in first["user-agent"].lower()


@pytest.mark.parametrize(
    ("step", "length", "text", "finish"),
    [
        (Reply("0123456789 and more"), 10, "0123456789", Finish.LENGTH),
        (Reply("0123456789 and more", gap=0.01), 10, "0123456789", Finish.LENGTH),
        (Hang(30, Reply("0123456789ab")), 10, "0123456789", Finish.LENGTH),
        (Reply("0123456789 and more", is_whole=True), 10, "0123456789", Finish.LENGTH),
        (Reply("0123456789"), 10, "0123456789", Finish.STOP),
        (Reply("42", thinking="What is six times seven?"), 10, "42", Finish.STOP),
    ],
)
def test_an_answer_that_is_longer_than_answers_may_be_is_cut_off(
    server: LLMServer, kind: str, step: Any, length: int, text: str, finish: Finish
) -> None:
    server.script([step])
    provider = connect(Endpoint(kind, server.url, KEY, answer_length=length, anywhere=True))
    *deltas, reply = provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())
    assert (reply.message.text, reply.finish) == (text, finish)  # type: ignore[union-attr]
    assert len("".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta))) <= length
    assert not any(isinstance(each, Thinking) and each.signature for each in reply.message.blocks)  # type: ignore[union-attr]


def test_a_call_that_is_longer_than_answers_may_be_is_not_made(server: LLMServer, kind: str) -> None:
    server.script([Reply(calls=[("read_file", {"path": "a"}), ("read_file", {"path": "b" * 99})])])
    provider = connect(Endpoint(kind, server.url, KEY, answer_length=60, anywhere=True))
    *_, reply = provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())
    assert [bool(call.problem) for call in reply.message.calls] == [False, True]  # type: ignore[union-attr]
    assert reply.finish is Finish.LENGTH  # type: ignore[union-attr]


def test_the_connection_is_tested_and_its_models_are_listed(server: LLMServer, kind: str) -> None:
    endpoint = Endpoint(kind, server.url, KEY, anywhere=True)
    server.script(
        [Reply(calls=[("report_ready", {"ready": True})]), Status(401, body={"error": {"message": "wrong key"}})]
    )
    assert probe.test_connection(endpoint, "m").ok
    assert "key is wrong" in probe.test_connection(endpoint, "m").message
    assert probe.list_models(endpoint) == ["m"]
