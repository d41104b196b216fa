"""What every adapter keeps: the cases that are the same in every dialect. Each test carries its id."""

import pytest

from agents.providers.base import (
    Finish,
)
from memory.messages import Message, Text, Thinking, ToolResult, ToolUse, assistant, tool, user
from tests.agents.providers.conftest import KINDS, Ask, answered
from tests.llm_server import LLMServer, Raw, Reply
from tests.llm_steps import text_of

pytestmark = pytest.mark.parametrize("kind", KINDS)
A = ("read_file", {"path": "a.txt"})


CUT = '{"path":"notes.md","content":"first line'


@pytest.mark.parametrize(
    ("arguments", "finish", "words"),
    [
        (CUT, "length", "output limit"),
        (CUT, "", "incomplete"),
        ("", "length", "output limit"),
        ("[1]", "", "not a JSON object"),
        ("{} {}", "", "not a JSON object"),
        ('{"n": NaN}', "", "not a JSON object"),
        ('{"n": 1e400}', "", "not a JSON object"),
        ("[" * 5000, "", "not a JSON object"),
    ],
)
def test_prv_04_cut_arguments_are_not_repaired(
    server: LLMServer, ask: Ask, arguments: str, finish: str, words: str
) -> None:
    server.script([Reply(calls=[("write_file", arguments)], finish=finish)])
    heard = ask()
    (call,) = heard.message.calls
    assert (call.name, call.arguments) == ("write_file", {})
    assert words in (call.problem or "")
    assert heard.reply.finish is (Finish.LENGTH if finish else Finish.TOOL_CALLS)
    assert ask(user("hi"), *answered(heard.message), user("ping")).text == "pong"


def _with_object(kind: str, arguments: str) -> Raw:
    """An answer with a call whose arguments are an object, not the text of one."""
    if kind == "anthropic":
        call = f'{{"type":"tool_use","id":"c1","name":"read_file","input":{arguments}}}'
        whole = f'{{"type":"message","content":[{call}],"stop_reason":"tool_use"}}'
    else:
        call = f'{{"id":"c1","function":{{"name":"read_file","arguments":{arguments}}}}}'
        said = f'"message":{{"role":"assistant","tool_calls":[{call}]}}'
        whole = f'{{"choices":[{{"finish_reason":"tool_calls",{said}}}],{said},"done":true}}'
    return Raw([whole.encode()], content_type="application/json")


@pytest.mark.parametrize("as_object", [False, True], ids=["text", "object"])
@pytest.mark.parametrize("number", [2**63 - 1, -(2**63) - 1, 2**64, 123456789012345678901])
def test_long_numbers_in_arguments_stay_what_they_are(
    server: LLMServer, ask: Ask, kind: str, number: int, as_object: bool
) -> None:
    """Ids of other systems are longer than floats are exact, and none of them may become another."""
    arguments = f'{{"id":{number}}}'
    answer = _with_object(kind, arguments) if as_object else Reply(calls=[("read_file", arguments)])
    server.script([answer, Reply("ok")])
    heard = ask()
    assert heard.calls[0][2] == {"id": number}
    assert isinstance(heard.calls[0][2]["id"], int)
    ask(user("hi"), *answered(heard.message))
    assert str(number).encode() in server.requests[-1].raw


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
def test_prv_09_a_dirty_tool_name_never_goes_back(server: LLMServer, ask: Ask, said: str, kept: str) -> None:
    server.script([Reply(calls=[(said, {"path": "a.txt"})])])
    heard = ask()
    assert heard.calls[0][1] == kept
    assert ask(user("hi"), *answered(heard.message), user("ping")).text == "pong"


@pytest.mark.parametrize("text", ["", "\n \n"], ids=["b", "c"])
def test_his_04_blank_text_makes_no_block_and_does_not_go_out(server: LLMServer, ask: Ask, text: str) -> None:
    server.script([Reply(text)])
    heard = ask()
    assert (heard.text, heard.message.blocks) == ("", ())
    for blank in (Text(text=text), Thinking(text="only a thought")):
        assert ask(user("hi"), Message(role="assistant", blocks=(blank,)), user("ping")).text == "pong"


def test_his_04_a_a_result_is_never_blank(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("ok")])
    call = ToolUse(id="c", name="run_command", arguments={"command": "true"})
    ask(user("hi"), assistant("", [call]), tool(ToolResult(id="c", content=" \n")))
    assert b"(no output)" in server.requests[0].raw


@pytest.mark.parametrize("said", ["x\0y", r"x\u0000y"], ids=["b", "e"])
def test_sto_01_nul_characters_are_shown_and_their_spelling_survives(server: LLMServer, ask: Ask, said: str) -> None:
    server.script([Reply(said, calls=[("add_note", {"title": said})])])
    heard = ask()
    kept = said.replace("\0", "\N{REPLACEMENT CHARACTER}")
    assert (heard.text, heard.calls[0][2]) == (kept, {"title": kept})
    assert ask(user("hi"), *answered(heard.message), user("ping")).text == "pong"


def test_sto_02_the_body_is_valid_utf_8_whatever_the_history_holds(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("ok")])
    call = ToolUse(id="c", name="read_file", arguments={"n": 10**30})
    ask(user("A\ud83d"), assistant("", [call]), tool(ToolResult(id="c", content="\udfe1")))
    assert server.requests[0].first_user_text == "A\N{REPLACEMENT CHARACTER}"


def test_an_id_that_the_conversation_knows_is_replaced(server: LLMServer, ask: Ask) -> None:
    server.script([Reply(calls=[A]), lambda _: Raw(sent)])
    first = ask()
    sent = _replayed(server, first.message.calls[0].id)
    again = ask(user("hi"), *answered(first.message), user("again"))
    assert again.calls[0][0] not in ("", first.calls[0][0])


def _replayed(server: LLMServer, identity: str) -> list[bytes]:
    """The same answer once more, with the same id."""
    request = server.requests[-1]
    dialect = server.dialect_of(request)
    assert dialect
    reply = Reply(calls=[A])
    chunks = [*dialect.begin(reply, request), *dialect.end(reply, request)]
    assert any(identity.encode() in chunk for chunk in chunks)
    return chunks


def test_a_changed_history_is_translated_anew(server: LLMServer, ask: Ask) -> None:
    server.script([Reply("a"), Reply("b")])
    ask(user("first"), assistant("x"), user("second"))
    ask(user("first"), assistant("y"), user("third"))
    told = [text_of(message["content"]) for message in server.requests[1].messages if message["role"] != "system"]
    assert told == ["first", "y", "third"]
