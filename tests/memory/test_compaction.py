"""Where a history may be cut (case HIS-03)."""

import pytest

from memory.compaction import clipped, cut, estimate
from memory.messages import Message, ToolResult, ToolUse, assistant, tool, user

GROUP_TURN = 6  # a question, a reply with three calls, their results, an answer


def turn(number: int, size: int = 30) -> list[Message]:
    calls = [ToolUse(id=f"k{number}{name}", name="look", arguments={}) for name in "123"]
    results = [tool(ToolResult(id=call.id, content="r" * size)) for call in calls]
    return [user(f"question {number}"), assistant("", calls), *results, assistant(f"answer {number}")]


def history(turns: int = 30) -> list[Message]:
    return [message for number in range(turns) for message in turn(number)]


def share_from(messages: list[Message], at: int) -> float:
    """The share by which a careless cut would fall before message `at`."""
    return estimate(messages[at:]) / estimate(messages)


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(2, id="a_between_the_calls_and_their_results"),
        pytest.param(3, id="b_between_two_results"),
        pytest.param(5, id="before_the_answer"),
    ],
)
def test_his_03_whole_turns_are_kept_or_dropped(inside: int) -> None:
    messages = history()
    at = cut(messages, share_from(messages, 20 * GROUP_TURN + inside))
    assert at % GROUP_TURN == 0
    assert messages[at].role == "user"
    assert 20 * GROUP_TURN < at <= 22 * GROUP_TURN


@pytest.mark.parametrize("open_at", [2, 3, 4, 5])
def test_his_03_c_the_open_group_is_always_kept(open_at: int) -> None:
    messages = [*history(), *turn(30, size=100_000)[:open_at]]
    at = cut(messages, 0.001)
    assert messages[at] == user("question 30")


def test_messages_that_were_taken_up_together_are_one_turn() -> None:
    messages = [*turn(0), user("one"), user("two"), assistant("both")]
    assert cut(messages, 0.01) == GROUP_TURN


def test_a_single_turn_is_not_cut() -> None:
    assert cut(turn(0), 0.01) == 0
    assert cut([], 0.5) == 0


def test_nothing_is_kept_of_a_whole_session() -> None:
    assert cut(history(2), 0) == 2 * GROUP_TURN


def test_results_are_clipped_and_questions_are_not() -> None:
    messages = [user("q" * 5_000), *turn(0, size=9_000)[1:]]
    shorter = clipped(messages, 100)
    assert shorter[0] == messages[0]
    assert estimate(shorter) < 2_000
    assert [message.role for message in shorter] == [message.role for message in messages]
    assert clipped(shorter, 100) == shorter
