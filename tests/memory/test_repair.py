"""Whatever a crash left behind, the model sees a history that every vendor accepts."""

from hypothesis import given, strategies as st

from memory.messages import Message, Text, ToolResult, ToolUse, assistant, tool, user
from memory.repair import INTERRUPTED, repaired


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


PIECES = st.one_of(
    st.just(user("u")),
    st.sampled_from("abcdef").map(result),
    st.lists(st.sampled_from("abcdef"), unique=True, max_size=3).map(lambda ids: assistant("t", map(call, ids))),
    st.just(Message(role="assistant", blocks=(Text(text="x"),))),
)


@given(st.lists(PIECES, max_size=12))
def test_every_call_has_exactly_one_result_right_after_it(history: list[Message]) -> None:
    owed: list[str] = []
    for message in repaired(history):
        if message.role == "tool":
            (block,) = message.blocks
            assert isinstance(block, ToolResult)
            assert owed.pop(0) == block.id
        else:
            assert not owed
            owed = [call.id for call in message.calls]
    assert not owed
