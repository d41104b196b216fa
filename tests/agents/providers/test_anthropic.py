"""What only Anthropic's Messages do, over real HTTP against a server as strict as the vendor."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from agents.providers.base import Endpoint, Finish, ModelRequest, Provider, ProviderError, Trouble, Usage
from agents.providers.catalog import connect
from agents.providers.pool import lease
from memory.messages import Message, Text, Thinking, ToolResult, ToolUse, assistant, tool, user
from tests.agents.providers.conftest import KEY, READ_FILE, Ask, answered
from tests.llm_server import A, LLMServer, Raw, Reply, Request, Status
from tools.cancel import CancelToken

pytestmark = pytest.mark.parametrize("kind", ["anthropic"])


def started(usage: dict[str, int]) -> bytes:
    return A("message_start", {"message": {"type": "message", "role": "assistant", "content": [], "usage": usage}})


def block(index: int, opened: Mapping[str, object], *deltas: Mapping[str, object]) -> bytes:
    events = [A("content_block_start", {"index": index, "content_block": opened})]
    events += [A("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
    return b"".join([*events, A("content_block_stop", {"index": index})])


def stopped(reason: str, output: int = 15, **delta: object) -> bytes:
    last = {"delta": {"stop_reason": reason, **delta}, "usage": {"output_tokens": output}}
    return A("message_delta", last) + A("message_stop")


def text(index: int, *pieces: str) -> bytes:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


BEGUN = started({"input_tokens": 10, "output_tokens": 1})


def test_prv_03_c_an_overloaded_vendor_in_mid_stream_may_be_asked_again(server: LLMServer, ask: Ask) -> None:
    error = A("error", {"error": {"type": "overloaded_error", "message": "busy"}})
    half = A("content_block_start", {"index": 0, "content_block": {"type": "text", "text": "Let me "}})
    server.script([Raw([BEGUN, half, error]), Reply("Let me see.")])
    with pytest.raises(ProviderError, match="busy") as caught:
        ask()
    assert (caught.value.trouble, caught.value.retryable) == (Trouble.OVERLOADED, True)
    assert caught.value.usage == Usage(10, 1)
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
    server.script([Reply("ok"), Reply("ok")])
    ask()
    ask(max_output_tokens=99)
    assert [request.body["max_tokens"] for request in server.requests] == [16_000, 99]


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


# Thoughts.

PLAN = "Plan:  two  spaces\n\n— ok "
THOUGHT = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": PLAN[:9]},
    {"type": "thinking_delta", "thinking": PLAN[9:]},
    {"type": "signature_delta", "signature": "c2ln+/8="},
)
HIDDEN = block(1, {"type": "redacted_thinking", "data": "ZW5j"})
NOW = block(2, {"type": "tool_use", "id": "t1", "name": "now", "input": {}})
PRV_08 = Raw([BEGUN, THOUGHT, HIDDEN, NOW, stopped("tool_use")])
SENT = [
    {"signature": "c2ln+/8=", "thinking": PLAN, "type": "thinking"},
    {"data": "ZW5j", "type": "redacted_thinking"},
    {"id": "t1", "input": {}, "name": "now", "type": "tool_use"},
]


def again(message: Message) -> Message:
    """As a new process reads it from the database."""
    return Message.model_validate_json(json.dumps(json.loads(message.model_dump_json()), sort_keys=True))


def test_prv_08_thoughts_come_back_byte_for_byte(server: LLMServer, ask: Ask) -> None:
    server.script([PRV_08, Reply("It is noon."), Reply("ok")])
    heard = ask()
    assert heard.thinking == PLAN
    assert ask(user("hi"), *answered(again(heard.message))).text == "It is noon."
    assert server.requests[1].messages[1]["content"] == SENT
    ask(user("hi"), *answered(heard.message), assistant("It is noon."), user("And now?"))
    assert server.requests[2].messages[1]["content"] == SENT, "the prefix stays the same when the loop is over"


def test_prv_08_thoughts_that_the_vendor_hides_are_kept_by_their_seal(server: LLMServer, ask: Ask) -> None:
    empty = block(
        0, {"type": "thinking", "thinking": "", "signature": ""}, {"type": "signature_delta", "signature": "x"}
    )
    server.script([Raw([BEGUN, empty, NOW, stopped("tool_use")]), Reply("ok")])
    heard = ask()
    assert heard.thinking == ""
    ask(user("hi"), *answered(again(heard.message)))
    assert server.requests[1].messages[1]["content"][0] == {"type": "thinking", "thinking": "", "signature": "x"}


def test_prv_08_thoughts_that_cannot_be_kept_as_they_came_do_not_go_back(server: LLMServer, ask: Ask) -> None:
    """NUL cannot be stored; half a character that comes with its other half is no change."""
    halves = THOUGHT.replace(json.dumps(PLAN[:9]).encode(), rb'"A\ud83d"').replace(
        json.dumps(PLAN[9:], ensure_ascii=False).encode(), rb'"\udfe1"'
    )
    nul = block(0, {"type": "thinking", "thinking": "a\0b", "signature": "x"})
    server.script([Raw([BEGUN, halves, text(1, "ok"), stopped("end_turn")])])
    server.script([Raw([BEGUN, nul, text(1, "ok"), stopped("end_turn")])])
    assert ask().message.blocks[0] == Thinking(text="A🟡", signature="c2ln+/8=", maker=server.address[7:])
    assert ask().message.blocks[0] == Thinking(text="a\N{REPLACEMENT CHARACTER}b")


def test_thoughts_go_to_their_maker_only(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("ok"), Reply("ok")])
    foreign = Thinking(text="x", signature="y", maker="elsewhere.example")
    ask(user("hi"), Message(role="assistant", blocks=(foreign, Text(text="Yes?"))), user("more"))
    plain = Thinking(text="for people")
    ask(user("hi"), Message(role="assistant", blocks=(plain, Text(text="Yes?"))), user("more"))
    assert all(len(request.messages[1]["content"]) == 1 for request in server.requests)


def test_thoughts_at_the_end_of_an_answer_do_not_go_back(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([BEGUN, text(1, "Well"), THOUGHT, stopped("max_tokens")]), Reply("ok")])
    ask(user("hi"), ask().message, user("Go on"))
    assert [part["type"] for part in server.requests[1].messages[1]["content"]] == ["text"]


def test_his_04_d_an_answer_of_thoughts_only_does_not_go_back(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([BEGUN, THOUGHT, stopped("end_turn")])])
    heard = ask()
    assert (heard.text, heard.reply.finish) == ("", Finish.STOP)
    assert ask(user("hi"), heard.message, user("ping")).text == "pong"
    assert len(server.requests[1].messages) == 1


BOUND = {
    "type": "error",
    "error": {
        "type": "invalid_request_error",
        "message": "messages.1.content.0: Invalid `signature` in `thinking` block. It is bound to another one.",
    },
}


def test_thoughts_that_the_vendor_takes_for_changed_are_left_out_for_good(
    server: LLMServer, kind: str, provider: Provider
) -> None:
    """Newer models bind a thought to all that precedes it: a session that was cut must not be refused for ever."""

    def refuse(_: Request) -> Status:
        server.messages.thoughts.forget()
        return Status(400, body=BOUND)

    fresh = Raw([BEGUN, THOUGHT.replace(b"c2ln", b"bmV3"), NOW.replace(b"t1", b"t2"), stopped("tool_use")])
    server.script([PRV_08, refuse, fresh, Reply("ok"), Reply("ok")])
    memo: dict[str, object] = {}

    def asked(messages: list[Message], by: Provider) -> Message:
        *_, reply = by.stream(ModelRequest("m", "", messages, [READ_FILE], memo=memo), CancelToken())
        return reply.message  # type: ignore[union-attr]

    messages = [user("hi")]
    messages += answered(asked(messages, provider))
    messages += answered(asked(messages, provider))
    asked(messages, provider)
    with lease(Endpoint(kind, server.url, KEY, anywhere=True)) as later:
        asked([again(message) for message in messages], later)
    kinds = [[part["type"] for each in request.messages for part in each["content"]] for request in server.requests]
    assert kinds[1][1:3] == ["thinking", "redacted_thinking"]
    assert kinds[2] == ["text", "tool_use", "tool_result"]
    assert kinds[3] == kinds[4] == ["text", "tool_use", "tool_result", "thinking", "tool_use", "tool_result"]


def test_a_refusal_of_other_things_is_not_tried_again(server: LLMServer, ask: Ask) -> None:
    server.script([Status(400, body=BOUND), Status(400, body={"error": {"message": "strange field"}})])
    for words in ("Invalid `signature`", "strange field"):
        with pytest.raises(ProviderError, match=words) as caught:
            ask()
        assert caught.value.refuses_content
    assert len(server.requests) == 2
