"""The contract of a provider, on a Chat Completions server over real HTTP."""

import itertools
import threading
import time

import pytest

from agents.providers.base import (
    Endpoint,
    Finish,
    ModelRequest,
    Patience,
    Provider,
    ProviderError,
    TextDelta,
    ThinkingDelta,
    Trouble,
    Usage,
)
from agents.providers.catalog import connect
from agents.providers.pool import lease
from memory.messages import Text, Thinking, ToolResult, ToolUse, assistant, tool, user
from tests.agents.providers.conftest import KEY, READ_FILE, Ask
from tests.llm_server import DONE, D, Drop, F, Hang, LLMServer, Raw, Reply, Status, U, event
from tools.cancel import Cancelled, CancelToken

A, B = ("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})


def test_an_answer_in_words_is_streamed_and_counted(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("Good morning to you", usage=(11, 4, 8))])
    heard = ask()
    assert heard.text == "Good morning to you"
    assert (heard.reply.finish, heard.reply.usage) == (Finish.STOP, Usage(11, 4, 8))


@pytest.mark.parametrize("size", [1, 2, 3, 7, None])
@pytest.mark.parametrize("calls", [[A], [A, B]])
def test_calls_are_put_together_however_they_are_cut(
    server: LLMServer, ask: Ask, size: int | None, calls: list[tuple[str, dict[str, str]]]
) -> None:
    server.script([Reply("Let me see.", calls=calls, chunk_size=size)])
    heard = ask()
    assert [(name, arguments) for _, name, arguments in heard.calls] == calls
    assert heard.text == "Let me see."
    assert heard.reply.finish is Finish.TOOL_CALLS


def test_thinking_becomes_a_block_before_the_text(server: LLMServer, ask: Ask) -> None:
    server.script(
        [Reply("Yes.", thinking="Is it so?"), Raw([D({"reasoning": "Hm."}), D({"content": "No."}), F("stop"), DONE])]
    )
    for thought, said in (("Is it so?", "Yes."), ("Hm.", "No.")):
        heard = ask()
        assert heard.thinking == thought
        assert heard.message.blocks == (Thinking(text=thought), Text(text=said))


def test_a_refusal_is_text_and_says_that_it_is_one(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"refusal": "I cannot "}), D({"refusal": "do that."}), F("stop"), DONE])])
    server.script([Raw([D({"content": "Well"}), F("content_filter"), DONE])])
    heard = ask()
    assert (heard.text, heard.reply.finish) == ("I cannot do that.", Finish.REFUSED)
    assert ask().reply.finish is Finish.REFUSED


def test_content_may_be_a_list_of_parts(server: LLMServer, ask: Ask) -> None:
    parts = [{"type": "text", "text": "o"}, {"type": "text", "text": "k"}]
    server.script([Raw([D({"content": parts}), F("stop"), DONE])])
    assert ask().text == "ok"


def test_a_server_that_does_not_stream_is_understood(server: LLMServer, ask: Ask) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "All at once."}, "finish_reason": "stop"}]}
    server.script([Status(200, body=answer)])
    assert ask().text == "All at once."


@pytest.mark.parametrize(
    ("status", "body", "trouble", "retryable"),
    [
        (
            401,
            {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}},
            "BAD_KEY",
            False,
        ),
        (429, {"error": {"message": "Slow down", "type": "rate_limit"}}, "RATE_LIMITED", True),
        (429, {"error": {"code": "insufficient_quota", "message": "no credit"}}, "OUT_OF_CREDIT", False),
        (
            429,
            {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded"}},
            "RATE_LIMITED",
            True,
        ),
        (
            404,
            {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}},
            "MODEL_UNKNOWN",
            False,
        ),
        (400, {"error": {"message": "maximum context length is 8192 tokens"}}, "TOO_LONG", False),
        (413, b"<html>too large</html>", "TOO_LONG", False),
        (400, {"error": {"message": "strange field"}}, "REFUSED_REQUEST", False),
        (500, {"error": {"message": "oops"}}, "OVERLOADED", True),
        (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "OVERLOADED", True),
        (503, b"<html>try later</html>", "OVERLOADED", True),
    ],
)
def test_a_refused_call_says_what_is_wrong_and_whether_to_try_again(
    server: LLMServer, ask: Ask, status: int, body: object, trouble: str, retryable: bool
) -> None:
    server.script([Status(status, body=body)])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert (caught.value.trouble, caught.value.retryable) == (Trouble[trouble], retryable)
    assert "secret" not in caught.value.message
    assert "<html>" not in caught.value.message
    if isinstance(body, dict) and trouble != "BAD_KEY":
        assert str(body["error"]["message"]) in caught.value.message


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"Retry-After": "1.5"}, 1.5, 2),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25, 1),
        ({"Retry-After": "Wed, 02 Dec 2099 09:00:30 GMT"}, 1e8, 1e10),
        ({"Retry-After": "Wednesday, 02-Dec-26 09:00:30 GMT"}, None, 1e10),
        ({"Retry-After": "Wed, 02 Dec 2020 08:59:00 GMT"}, None, None),
        ({"Retry-After": "null"}, None, None),
        ({"Retry-After": ""}, None, None),
        ({"Retry-After": "soon"}, None, None),
        ({"Retry-After": "-3"}, None, None),
        ({"Retry-After": "inf"}, None, None),
    ],
)
def test_the_asked_for_wait_is_passed_on(
    server: LLMServer, ask: Ask, headers: dict[str, str], least: float | None, most: float | None
) -> None:
    server.script([Status(429, headers, {"error": {"message": "slow down"}})])
    with pytest.raises(ProviderError) as caught:
        ask()
    wait = caught.value.retry_after
    assert (least or 0) <= wait <= most if wait is not None and most else wait is None and least is None


def test_a_key_that_cannot_be_one_is_refused_before_it_is_sent(server: LLMServer) -> None:
    provider = connect(Endpoint("compatible", server.url, "sk-süß\nX: y", anywhere=True))
    with pytest.raises(ProviderError) as caught:
        list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    assert caught.value.trouble is Trouble.BAD_KEY
    assert "süß" not in str(caught.value)
    assert not server.requests


@pytest.mark.parametrize("address", ["http://127.0.0.1:1/v1", "nonsense", ""])
def test_a_server_that_is_not_there_is_unreachable(address: str) -> None:
    provider = connect(Endpoint("compatible", address, KEY, anywhere=True))
    with pytest.raises(ProviderError) as caught:
        list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    assert caught.value.trouble is Trouble.UNREACHABLE
    assert caught.value.retryable is address.startswith("http")


@pytest.mark.parametrize(
    "step", [Drop(), Drop([D({"content": "Half an ans"})]), Raw([D({"content": "Half an ans"})]), Raw([])]
)
def test_an_answer_that_breaks_off_is_an_error_that_may_be_tried_again(
    server: LLMServer, ask: Ask, step: Drop | Raw
) -> None:
    server.script([step, Reply("A whole answer")])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.retryable
    assert caught.value.trouble in (Trouble.BROKEN_STREAM, Trouble.UNREACHABLE)
    assert ask().text == "A whole answer", "the provider is usable afterwards"


def test_the_tokens_of_an_answer_that_breaks_off_are_known(server: LLMServer, ask: Ask) -> None:
    server.script([Drop([D({"content": "x"}), U(7, 59), U(7, 60)])])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.usage == Usage(7, 60, None)


def test_an_answer_with_a_finish_but_without_the_end_mark_is_whole(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"content": "done"}), F("stop")]), Drop([D({"content": "done"}), F("stop")])])
    assert ask().text == "done"
    assert ask().text == "done"


def test_running_totals_are_not_added_up(server: LLMServer, ask: Ask) -> None:
    totals = [U(7, number) for number in range(1, 101)]
    server.script([Raw([D({"content": "x"}), *totals, F("stop"), DONE])])
    assert ask().reply.usage == Usage(7, 100, None)


@pytest.mark.parametrize("after", [[], [D({"content": "Once upon"})]])
def test_cancelling_ends_a_blocked_read_at_once(server: LLMServer, ask: Ask, after: list[bytes]) -> None:
    server.script([Hang(30, after), Reply("next")])
    cancel = CancelToken()
    threading.Timer(0.2, cancel.cancel, ["You stopped it."]).start()
    started = time.monotonic()
    with pytest.raises(Cancelled, match="You stopped it"):
        ask(cancel=cancel)
    assert time.monotonic() - started < 0.5
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


def test_the_connection_is_reused_and_the_prefix_stays_the_same(server: LLMServer) -> None:
    messages = [user("hi")]
    with lease(Endpoint("compatible", server.url, KEY, anywhere=True)) as provider:
        for turn in range(3):
            server.script([Reply(calls=[A])])
            *_, reply = provider.stream(ModelRequest("m", "System.", messages, [READ_FILE]), CancelToken())
            call = reply.message.calls[0]  # type: ignore[union-attr]
            messages += [reply.message, tool(ToolResult(id=call.id, content=f"result {turn}"))]  # type: ignore[union-attr]
    bodies = [request.raw for request in server.requests]
    for earlier, later in itertools.pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}"))


def test_each_request_carries_the_key_and_what_the_sdk_says_of_itself(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("ok"), Reply("ok")])
    ask()
    ask()
    first, second = (request.headers for request in server.requests)
    assert first == second
    assert first["authorization"] == f"Bearer {KEY}"
    assert first["content-type"] == "application/json"
    assert "openai" in first["user-agent"].lower()


def test_a_piece_of_the_answer_comes_out_before_the_next_is_there(server: LLMServer, provider: Provider) -> None:
    server.script([Hang(30, [D({"reasoning": "Hm"}), D({"content": "Once"}), D({"content": " upon"})])])
    stream = provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())
    assert list(itertools.islice(stream, 3)) == [ThinkingDelta("Hm"), TextDelta("Once"), TextDelta(" upon")]


def test_an_answer_is_over_with_its_end_mark_though_the_server_goes_on(server: LLMServer, ask: Ask) -> None:
    server.script([Hang(30, [D({"content": "done"}), F("stop"), DONE]), Reply("next")])
    started = time.monotonic()
    assert ask().text == "done"
    assert time.monotonic() - started < 10
    assert ask().text == "next"


def test_a_changed_history_is_translated_anew(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("a"), Reply("b")])
    ask(user("first"), assistant("x"), user("second"))
    ask(user("first"), assistant("y"), user("third"))
    assert [message["content"] for message in server.requests[1].messages[1:]] == ["first", "y", "third"]


def test_an_id_that_the_conversation_knows_is_replaced(server: LLMServer, ask: Ask) -> None:
    piece = {"index": 0, "id": "call_0", "function": {"name": "read_file", "arguments": "{}"}}
    server.script([Raw([D({"tool_calls": [piece]}), F("tool_calls"), DONE])])
    old = ToolUse(id="call_0", name="read_file", arguments={})
    heard = ask(user("hi"), assistant("", [old]), tool(ToolResult(id="call_0", content="x")), user("again"))
    assert heard.calls[0][0] not in ("", "call_0")


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("read_file<|channel|>commentary", "read_file"),
        ("functions.read_file", "read_file"),
        ("Read File", "Read_File"),
        ("", "unnamed"),
        ("x" * 80, "x" * 64),
    ],
)
def test_a_dirty_tool_name_never_goes_back(server: LLMServer, ask: Ask, said: str, kept: str) -> None:
    server.script([Reply(calls=[(said, {})]), Reply("ok")])
    heard = ask()
    assert heard.calls[0][1] == kept
    ask(user("hi"), heard.message, tool(ToolResult(id=heard.calls[0][0], content="no such tool", is_error=True)))


@pytest.mark.parametrize(("kind", "field"), [("openai", "max_completion_tokens"), ("compatible", "max_tokens")])
def test_the_output_limit_is_sent_under_the_servers_name_for_it(server: LLMServer, kind: str, field: str) -> None:
    server.script([Reply("ok")])
    with lease(Endpoint(kind, server.url, KEY, anywhere=True)) as provider:
        list(provider.stream(ModelRequest("m", "", [user("hi")], max_output_tokens=99), CancelToken()))
    assert server.requests[0].body[field] == 99


def test_a_web_page_is_not_an_answer(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([b"<html>Welcome!</html>"], content_type="text/html")])
    with pytest.raises(ProviderError, match="web page"):
        ask()


def test_signs_of_life_without_output_end_in_a_time_out(server: LLMServer) -> None:
    from agents.providers.openai import OpenAIProvider

    server.script([Raw([b": still here\n\n"] * 100, gap=0.02), Hang(5)])
    provider = OpenAIProvider(Endpoint("compatible", server.url, KEY, Patience(idle=0.3, silent=0.2), anywhere=True))
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
        assert caught.value.trouble is Trouble.TIMEOUT


def test_an_unreadable_piece_of_the_stream_is_an_error(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([D({"content": "x"}), b"data: {half\n\n", F("stop"), DONE])])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.trouble is Trouble.BROKEN_STREAM


def test_other_events_are_ignored(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([event({"type": "ping"}), event(["x"]), D({"content": "ok"}), F("stop"), DONE])])
    assert ask().text == "ok"
