"""Thoughts that a vendor signs, over real HTTP against a server that compares them with what it sent (PRV-08)."""

import json

import pytest

from agents.providers.base import Endpoint, Finish, ModelRequest, Provider, ProviderError
from agents.providers.pool import lease
from memory.messages import Message, Text, Thinking, assistant, user
from tests.agents.providers.conftest import KEY, READ_FILE, Ask, answered
from tests.llm_anthropic import block, started, stopped, text
from tests.llm_server import LLMServer, Raw, Reply, Request, Status
from tools.cancel import CancelToken

pytestmark = pytest.mark.parametrize("kind", ["anthropic"])

BEGUN = started({"input_tokens": 10, "output_tokens": 1})
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
