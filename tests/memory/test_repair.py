"""Whatever a crash left behind, the model sees a history that every vendor accepts."""

from dataclasses import replace

import orjson
import pytest
from hypothesis import given, strategies as st

from agents.providers.anthropic_body import MessagesBody
from agents.providers.base import ModelRequest
from agents.providers.chat_body import ChatBody
from memory.compaction import clipped
from memory.degrade import LADDER, Remedy, Rung, apply, degraded
from memory.grammar import Grammar, Ungrammatical
from memory.media import LARGEST, LEFT_OUT, within_size
from memory.messages import Block, Message, Text, Thinking, ToolResult, ToolUse, assistant, tool, user
from memory.repair import INTERRUPTED, NO_OUTPUT, repaired
from tests.llm_anthropic_rules import violation as messages_violation
from tests.llm_script import Request, violation


def call(name: str) -> ToolUse:
    return ToolUse(id=name, name="look", arguments={})


def result(name: str, text: str = "seen") -> Message:
    return tool(ToolResult(id=name, content=text))


def test_a_whole_history_is_left_alone() -> None:
    history = [user("Hi"), assistant("", [call("a"), call("b")]), result("a"), result("b"), assistant("Done")]
    assert repaired(history) == history


def test_his_01_a_call_without_a_result_is_answered_as_interrupted() -> None:
    fixed = repaired([user("Hi"), assistant("", [call("a"), call("b")]), result("a"), user("Still there?")])
    answers = [block for message in fixed for block in message.blocks if isinstance(block, ToolResult)]
    assert [(answer.id, answer.content, answer.is_error) for answer in answers] == [
        ("a", "seen", False),
        ("b", INTERRUPTED, True),
    ]
    assert fixed[-1] == user("Still there?")


def test_results_come_directly_after_their_call_and_in_order() -> None:
    fixed = repaired([assistant("", [call("a"), call("b")]), user("Quick!"), result("b"), result("a")])
    assert fixed == [assistant("", [call("a"), call("b")]), result("a"), result("b"), user("Quick!")]


def test_results_without_a_call_and_empty_messages_are_left_out() -> None:
    assert repaired([result("x"), Message(role="assistant", blocks=()), user("Hi")]) == [user("Hi")]


def test_a_missing_result_is_made_from_what_is_on_record() -> None:
    known = {"b": ToolResult(id="b", content="Created the note.")}
    fixed = repaired([assistant("", [call("a"), call("b")]), user("Well?")], known)
    assert fixed[1:3] == [tool(ToolResult(id="a", content=INTERRUPTED, is_error=True)), tool(known["b"])]


def test_of_several_results_the_first_real_one_counts() -> None:
    stand_in = tool(ToolResult(id="a", content=INTERRUPTED, is_error=True))
    fixed = repaired([assistant("", [call("a")]), stand_in, result("a", "real"), result("a", "late")])
    assert fixed == [assistant("", [call("a")]), result("a", "real")]


def test_a_call_that_could_not_be_read_is_answered_with_what_was_wrong() -> None:
    broken = call("a").model_copy(update={"problem": "The arguments were incomplete."})
    assert repaired([assistant("", [broken])])[1] == tool(
        ToolResult(id="a", content="The arguments were incomplete.", is_error=True)
    )


def test_a_repeated_call_is_one_call() -> None:
    turn = [assistant("", [call("a")]), result("a")]
    assert repaired([*turn, *turn, user("Hi")]) == [*turn, user("Hi")]


def test_blank_words_and_thoughts_without_words_are_left_out() -> None:
    blank, thought = Text(text=" \n"), Thinking(text="hm")
    history = [
        Message(role="assistant", blocks=(blank, call("a"))),
        Message(role="tool", blocks=(ToolResult(id="a", content=""),)),
        Message(role="assistant", blocks=(thought,)),
        Message(role="user", blocks=(blank,)),
    ]
    assert repaired(history) == [
        assistant("", [call("a")]),
        tool(ToolResult(id="a", content=NO_OUTPUT)),
    ]


SIGNED = Thinking(text="hm", signature="sealed", maker="vendor")
SAID = Message(role="assistant", blocks=(SIGNED, Text(text="x" * 900), call("a")))


def test_prv_08_b_what_is_changed_loses_its_thoughts_as_a_whole() -> None:
    """By the trimmer, by a rung of the ladder, by the repair; and what is not changed keeps them."""
    trimmed, _ = clipped([SAID, result("a")], 500)
    assert [type(block) for block in trimmed.blocks] == [Text, ToolUse]
    assert clipped([SAID, result("a")], 1_000)[0] is SAID
    picture = Message(role="assistant", blocks=(SIGNED, Text(text=f"data:image/png;base64,{'A' * LARGEST}")))
    assert not any(isinstance(block, Thinking) for block in degraded(picture, Rung.MEDIA).blocks)
    assert degraded(SAID, Rung.MEDIA) is SAID
    blank = Message(role="assistant", blocks=(SIGNED, Text(text=" "), call("b")))
    again = Message(role="assistant", blocks=(SIGNED, Text(text="And"), call("a")))
    fixed = repaired([SAID, result("a"), blank, result("b"), again])
    assert fixed[0] is SAID
    assert [fixed[2].blocks, fixed[4].blocks] == [(call("b"),), (Text(text="And"),)]


def test_media_that_no_vendor_takes_are_left_out() -> None:
    picture = f"Look: data:image/png;base64,{'A' * LARGEST} nice"
    assert within_size(user(picture)) == user(f"Look: {LEFT_OUT} nice")
    answer = tool(ToolResult(id="a", content=picture))
    assert within_size(answer).blocks == (ToolResult(id="a", content=f"Look: {LEFT_OUT} nice"),)
    small = user("data:image/png;base64,AAAA")
    assert within_size(small) is small


LONG = "data:image/png;base64,AA and words " * 900
IDS = st.sampled_from("abcdef")
BLOCK: st.SearchStrategy[Block] = st.one_of(
    st.sampled_from(["x", "", " \n", "data:image/png;base64,AA"]).map(lambda text: Text(text=text)),
    st.sampled_from(["hm", ""]).map(lambda text: Thinking(text=text)),
    st.sampled_from(["hm", ""]).map(lambda text: Thinking(text=text, signature="sealed", maker="vendor")),
    st.builds(ToolUse, id=IDS, name=st.just("look"), arguments=st.just({}), problem=st.sampled_from([None, "cut off"])),
    st.builds(ToolResult, id=IDS, content=st.sampled_from(["seen", "", INTERRUPTED, LONG]), is_error=st.booleans()),
)
ROWS = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "tool"]),
        blocks=st.lists(BLOCK, max_size=4).map(tuple),
    ),
    max_size=14,
)
RECORDED = st.dictionaries(IDS, st.sampled_from(["done", ""])).map(
    lambda known: {name: ToolResult(id=name, content=words) for name, words in known.items()}
)


def strict(history: list[Message]) -> str:
    """What the strict server of the tests says to a history, in each of its dialects."""
    request = ModelRequest("m", "Be brief.", history)
    chat = b"".join(ChatBody("max_tokens").serialise(request, with_usage=True))
    said = violation(Request("POST", "/v1/chat/completions", {}, chat, orjson.loads(chat)))
    turns = replace(request, messages=[user("hi"), *history, user("ping")])
    body = b"".join(MessagesBody("vendor").serialise(turns))
    known = {"anthropic-version": "any"}
    return said or messages_violation(Request("POST", "/v1/messages", known, body, orjson.loads(body)))


@given(ROWS, RECORDED)
def test_whatever_the_rows_are_the_history_is_one_that_strict_servers_take(
    rows: list[Message], recorded: dict[str, ToolResult]
) -> None:
    fixed = repaired(rows, recorded)
    Grammar().check(fixed)
    assert not strict(fixed)
    assert repaired(fixed) == fixed


@given(ROWS, st.sampled_from(LADDER), st.booleans())
def test_on_every_rung_a_history_stays_one_that_strict_servers_take(
    rows: list[Message], remedy: Remedy, stored: bool
) -> None:
    fixed = repaired(rows)
    plainer = [degraded(message, remedy.rung) for message in fixed] if stored else apply(fixed, remedy)
    Grammar().check(plainer)
    assert not strict(plainer)


@given(ROWS, st.sampled_from(Rung))
def test_what_is_plain_enough_for_a_rung_is_left_alone_by_it(rows: list[Message], rung: Rung) -> None:
    for message in rows:
        plainer = degraded(message, rung)
        assert degraded(plainer, rung) is plainer


def test_a_history_is_checked_as_it_grows() -> None:
    grammar, history = Grammar(), [user("Hi"), assistant("", [call("a")]), result("a")]
    grammar.check(history)
    history += [assistant("", [call("b")]), result("a")]
    with pytest.raises(Ungrammatical):
        grammar.check(history)
