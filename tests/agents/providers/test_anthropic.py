"""What only Anthropic's Messages do, over real HTTP against a server as strict as the vendor."""

from datetime import UTC, datetime, timedelta

import pytest

from agents.providers.base import Endpoint, Finish, ModelRequest, ProviderError, Reply as Whole, Trouble, Usage
from agents.providers.catalog import connect
from agents.providers.pool import lease
from memory.messages import Text, ToolResult, ToolUse, assistant, tool, user
from tests.agents.providers.conftest import KEY, Ask, answered
from tests.llm_anthropic import block, started, stopped, text
from tests.llm_server import A, Drop, LLMServer, Raw, Reply, Status
from tools.cancel import CancelToken

pytestmark = pytest.mark.parametrize("kind", ["anthropic"])


BEGUN = started({"input_tokens": 10, "output_tokens": 1})


def test_prv_03_c_an_overloaded_vendor_in_mid_stream_may_be_asked_again(server: LLMServer, ask: Ask) -> None:
    error = A("error", {"error": {"type": "overloaded_error", "message": "busy"}})
    half = A("content_block_start", {"index": 0, "content_block": {"type": "text", "text": "Let me "}})
    server.script([Raw([BEGUN, half, error]), Reply("Let me see.")])
    with pytest.raises(ProviderError, match="busy") as caught:
        ask()
    assert (caught.value.trouble, caught.value.retryable) == (Trouble.OVERLOADED, True)
    assert caught.value.usage == Usage(10, None)
    assert ask().text == "Let me see."


def test_cos_01_b_cached_tokens_are_part_of_the_input(server: LLMServer, ask: Ask) -> None:
    usage = {"input_tokens": 60, "cache_read_input_tokens": 80_000, "cache_creation_input_tokens": 2_000}
    server.script([Raw([started({**usage, "output_tokens": 1}), text(0, "ok"), stopped("end_turn", 500)])])
    assert ask().reply.usage == Usage(82_060, 500, 80_000, 2_000)


@pytest.mark.parametrize("last", [15, 0])
def test_cos_02_b_counts_are_totals_and_are_not_added(server: LLMServer, ask: Ask, last: int) -> None:
    totals = A("message_delta", {"delta": {}, "usage": {"input_tokens": 0, "output_tokens": 15}})
    server.script([Raw([BEGUN, text(0, "ok"), totals, stopped("end_turn", last)])])
    assert ask().reply.usage == Usage(10, 15)


@pytest.mark.parametrize("begun", [BEGUN, started({"input_tokens": 10, "output_tokens": 0})])
def test_i17_what_an_answer_begins_with_is_no_count_of_one_that_breaks_off(
    server: LLMServer, ask: Ask, begun: bytes
) -> None:
    server.script([Drop([begun, text(0, "word " * 100)])])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert (caught.value.trouble, caught.value.usage) == (Trouble.BROKEN_STREAM, Usage(10, None))


def test_i17_an_answer_that_we_have_ended_is_not_counted(server: LLMServer) -> None:
    server.script([Raw([BEGUN, text(0, *["word " * 10] * 50)])])
    endpoint = Endpoint("anthropic", server.url, KEY, anywhere=True, answer_length=1_000)
    with lease(endpoint) as provider:
        *_, reply = provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())
    assert isinstance(reply, Whole)
    assert (reply.finish, reply.usage) == (Finish.LENGTH, Usage(10, None))


def test_tokens_that_nobody_counted_are_unknown(server: LLMServer, ask: Ask) -> None:
    message = {"type": "message", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn"}
    server.script([Status(200, body=message)])
    assert ask().reply.usage == Usage()


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", Finish.STOP),
        ("stop_sequence", Finish.STOP),
        ("max_tokens", Finish.LENGTH),
        ("model_context_window_exceeded", Finish.LENGTH),
        ("refusal", Finish.REFUSED),
    ],
)
def test_why_the_model_stopped(server: LLMServer, ask: Ask, reason: str, finish: Finish) -> None:
    server.script([Raw([BEGUN, text(0, "ok"), stopped(reason)])])
    assert ask().reply.finish is finish


def test_a_refusal_is_told_in_the_vendors_words(server: LLMServer, ask: Ask) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "I cannot help with that."}
    server.script([Raw([BEGUN, stopped("refusal", stop_details=details)])])
    heard = ask()
    assert (heard.text, heard.reply.finish) == ("I cannot help with that.", Finish.REFUSED)


def test_an_answer_with_a_reason_but_without_the_end_mark_is_whole(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([BEGUN, text(0, "done"), stopped("end_turn").removesuffix(A("message_stop"))])])
    assert ask().text == "done"


def test_kinds_of_events_and_blocks_that_nobody_knows_are_passed_over(server: LLMServer, ask: Ask) -> None:
    strange = block(0, {"type": "server_tool_use", "id": "s", "name": "x", "input": {}}, {"type": "odd", "text": "x"})
    lost = A("content_block_delta", {"index": [9], "delta": {"type": "text_delta", "text": "x"}})
    server.script([Raw([BEGUN, A("ping"), A("odd"), strange, lost, text(1, "o", "k"), stopped("end_turn")])])
    assert ask().message.blocks == (Text(text="ok"),)


def test_texts_of_one_answer_are_paragraphs(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([BEGUN, text(0, "One ", "two"), text(1, "\n"), text(2, "three"), stopped("end_turn")])])
    assert ask().text == "One two\n\nthree"


def test_arguments_may_come_with_the_start_of_a_call(server: LLMServer, ask: Ask) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}}
    server.script([Raw([BEGUN, block(0, call), stopped("tool_use")])])
    assert ask().calls == [("t1", "read_file", {"path": "a"})]


def test_more_blocks_than_any_answer_has_end_it(server: LLMServer, ask: Ask) -> None:
    opened = A("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
    server.script([Raw([BEGUN, opened * 3_000, stopped("end_turn")])])
    assert ask().reply.finish is Finish.LENGTH


def test_the_limit_of_a_reply_is_always_sent(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("ok")] * 4)
    ask()
    ask(model="claude-opus-4-1-20250805")
    ask(model="claude-haiku-5-5")
    ask(max_output_tokens=99)
    assert [request.body["max_tokens"] for request in server.requests] == [16_000, 32_000, 16_000, 99]


def test_roles_take_turns_and_results_come_first(server: LLMServer, ask: Ask) -> None:
    """Words that were said while the calls ran stand after all their results, in the same message."""
    calls = [ToolUse(id=f"c{at}", name="read_file", arguments={"path": "a"}) for at in range(2)]
    server.script([Reply("ok")])
    one, two = assistant("Let me see.", calls), assistant("And another thing.")
    ask(user("hi"), user("there"), *answered(one), user("Wait"), two, assistant("Yes?"), user("Go on"))
    told = [(message["role"], [part["type"] for part in message["content"]]) for message in server.requests[0].messages]
    assert told == [
        ("user", ["text", "text"]),
        ("assistant", ["text", "tool_use", "tool_use"]),
        ("user", ["tool_result", "tool_result", "text"]),
        ("assistant", ["text", "text"]),
        ("user", ["text"]),
    ]


def test_ids_and_names_of_other_vendors_are_made_legal(server: LLMServer, ask: Ask) -> None:
    call = ToolUse(id="functions.read_file:0", name="functions.read file", arguments={"b": 1, "a": 2})
    server.script([Reply("ok")])
    ask(user("hi"), assistant("", [call]), tool(ToolResult(id=call.id, content="no", is_error=True)))
    _, asked, result = server.requests[0].messages
    assert asked["content"][0]["name"] == "read_file"
    assert list(asked["content"][0]["input"]) == ["a", "b"], "JSONB keeps no order"
    assert result["content"][0]["is_error"]


def test_marks_of_the_cache_do_not_move_in_what_is_kept(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("ok"), Reply("ok")])
    ask(user("hi"))
    ask(user("hi"), assistant("ok"), user("more"))
    first, second = server.requests
    assert first.body["cache_control"] == first.body["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert second.raw.startswith(first.raw.removesuffix(b"]}]}"))
    assert second.raw.count(b"cache_control") == 2


def test_no_system_no_tools(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("ok")])
    ask(system=" ", tools=[])
    assert not {"system", "tools"} & set(server.requests[0].body)


@pytest.mark.parametrize("ending", ["", "/v1", "/v1/"])
def test_the_address_may_name_the_version(server: LLMServer, kind: str, ending: str) -> None:
    server.script([Reply("ok")])
    with lease(Endpoint(kind, server.address + ending, KEY, anywhere=True)) as provider:
        list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    assert server.requests[0].path == "/v1/messages"


def test_what_the_environment_says_to_the_sdk_is_not_sent(
    server: LLMServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", "x-secret: 1")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "another")
    server.script([Reply("ok")])
    provider = connect(Endpoint(kind, server.url, "a key of its own", anywhere=True))
    list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    headers = server.requests[0].headers
    assert "x-secret" not in headers
    assert headers["authorization"] == "Bearer a key of its own"
    assert headers["anthropic-version"]


def test_without_another_word_a_limit_ends_when_it_is_renewed(server: LLMServer, ask: Ask) -> None:
    def until(seconds: float) -> str:
        return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    name, free = "anthropic-ratelimit-output-tokens", "anthropic-ratelimit-requests"
    limits = {f"{name}-remaining": "0", f"{name}-reset": until(60)}
    limits |= {f"{free}-remaining": "5", f"{free}-reset": until(600)}
    odd = {f"{name}-remaining": "0", f"{name}-reset": "soon"}
    body = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}
    server.script([Status(429, headers, body) for headers in (limits, {**limits, "retry-after": "7"}, odd, {})])
    waits = []
    for _ in range(4):
        with pytest.raises(ProviderError) as caught:
            ask()
        waits.append(caught.value.retry_after)
    assert waits[0] is not None
    assert 30 < waits[0] <= 60
    assert waits[1:] == [7, None, None]
