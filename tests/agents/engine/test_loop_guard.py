"""The guard against loops alone: tables of calls and what becomes of them."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.engine.loop_guard import IN_CIRCLES, IN_VAIN, SAID, SAID_ENOUGH, WARNING, LoopGuard
from memory.messages import ToolUse
from tools.base import Arguments, Effect, Outcome, Tool, ToolContext


class Looks(Tool[Arguments]):
    name = "look"
    effect = Effect.PURE

    def run(self, arguments: Arguments, context: ToolContext) -> Outcome:
        raise AssertionError("the guard runs nothing")


class Polls(Looks):
    name = "poll"
    pollable = True


class Notes(Looks):
    name = "note"
    effect = Effect.LOCAL


class Commands(Looks):
    name = "command"
    effect = Effect.NON_IDEMPOTENT


class Speaks(Looks):
    name = "speak"
    effect = Effect.IDEMPOTENT
    speaks = True


TOOLS: dict[str, Tool[Any]] = {tool.name: tool() for tool in (Looks, Polls, Notes, Commands, Speaks)}


@dataclass
class Run:
    """One call a reply. `guard` goes through JSON after each, as it does in the database."""

    guard: LoopGuard = field(default_factory=LoopGuard)
    step: int = 0

    def call(self, tool: str, arguments: dict[str, Any], answer: str = "same", *, failed: bool = False) -> str:
        """Return `ran`, `warned`, or why it was blocked."""
        use = ToolUse(id=f"c{self.step}", name=tool, arguments=arguments)
        self.step += 1
        why = self.guard.admit(self.step, 0, use, TOOLS[tool])
        became = why or ("warned" if self.guard.note(0, answer, failed=failed) == WARNING else "ran")
        self.guard = LoopGuard.model_validate_json(self.guard.model_dump_json(exclude_defaults=True))
        return became

    def looks(self, paths: str, answers: str = "") -> list[str]:
        return [self.call("look", {"path": path}, (answers or "x" * 99)[place]) for place, path in enumerate(paths)]


def test_the_third_identical_call_is_blocked_and_stays_so() -> None:
    assert Run().looks("aaaa") == ["ran", "warned", IN_VAIN, IN_VAIN]


def test_order_of_keys_and_spaces_do_not_make_another_call() -> None:
    run = Run()
    run.call("note", {"path": "a", "lines": {"from": 1, "to": 2}})
    run.call("note", {"lines": {"to": 2, "from": 1}, "path": "a"})
    assert run.call("note", {"path": "a", "lines": {"from": 1, "to": 2}}) == IN_VAIN


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        ({"q": "half marathon"}, {"q": "Half-Marathon"}, {"q": " marathon  half "}),
        ({"q": "shoes", "limit": 5}, {"q": "shoes", "limit": 10}, {"q": "shoes"}),
        ({"q": ["red", "shoes"]}, {"q": ["Red", "shoes"]}, {"q": ["RED", "shoes!"]}),
    ],
)
def test_the_same_question_in_other_words_brings_nothing_new(first: Any, second: Any, third: Any) -> None:
    run = Run()
    assert [run.call("look", each) for each in (first, second, third)] == ["ran", "warned", IN_VAIN]


@pytest.mark.parametrize(
    ("first", "second", "third"),
    [
        ({"path": "a.txt"}, {"path": "b.txt"}, {"path": "c.txt"}),
        ({"q": "?"}, {"q": "!"}, {"q": "…"}),
        ({"from": "a", "to": "b"}, {"from": "b", "to": "a"}, {"from": "a"}),
    ],
)
def test_other_questions_with_the_same_answer_are_asked(first: Any, second: Any, third: Any) -> None:
    run = Run()
    assert [run.call("look", each) for each in (first, second, third)] == ["ran"] * 3


def test_polling_is_no_loop_while_the_answer_changes() -> None:
    assert Run().looks("aaaaaa", "123456") == ["ran"] * 6
    assert Run().looks("aaaaaa", "123345") == ["ran", "ran", "ran", "warned", IN_VAIN, IN_VAIN]


def test_a_tool_that_is_pollable_is_never_in_vain() -> None:
    run = Run()
    assert [run.call("poll", {}) for _ in range(15)] == ["ran"] * 15
    assert run.guard.same_tool == ("poll", 1)


def test_pages_of_one_list_are_read_one_after_the_other() -> None:
    run = Run()
    assert [run.call("look", {"q": "a", "page": page}, f"page {page}") for page in range(9)] == ["ran"] * 9


def test_an_act_is_blocked_the_third_time_whatever_it_answers() -> None:
    run = Run()
    assert [run.call("note", {"title": "a"}, f"id {n}") for n in range(3)] == ["ran", "warned", IN_VAIN]
    run.call("note", {"title": "b"})
    assert run.call("note", {"title": "a"}) == IN_VAIN, "and for good"


@pytest.mark.parametrize(("calls", "blocked_at"), [("ababab", 3), ("abcabcabc", 5), ("xyababab", 5), ("aabab", 3)])
def test_circles_are_blocked_before_they_close_again(calls: str, blocked_at: int) -> None:
    became = Run().looks(calls, calls)
    assert [not each.startswith("Not executed") for each in became].index(False) == blocked_at


def test_circles_that_bring_news_go_on() -> None:
    assert IN_CIRCLES not in Run().looks("abababab", "12345678")


def test_what_was_read_may_be_read_again_after_the_world_has_changed() -> None:
    run = Run()
    for number in range(6):
        assert run.call("command", {"line": "git status"}) in ("ran", "warned")
        assert run.call("look", {"path": "a"}) in ("ran", "warned")
        assert run.call("note", {"title": str(number)}) == "ran"


def test_a_call_that_is_barred_may_be_made_again_after_the_world_has_changed() -> None:
    run = Run()
    assert run.looks("aaa")[-1] == IN_VAIN
    run.call("note", {"title": "new"})
    assert run.looks("a") == ["ran"]


def test_repeating_the_same_change_is_no_news_for_others() -> None:
    run = Run()
    became = [run.call("command", {"line": line}) for line in ["status", "touch"] * 4]
    assert IN_CIRCLES in became or IN_VAIN in became


def test_calls_of_one_reply_count_as_well() -> None:
    guard, tool = LoopGuard(), TOOLS["look"]
    calls = [ToolUse(id=str(at), name="look", arguments={"path": "a"}) for at in range(3)]
    assert [guard.admit(1, at, call, tool) for at, call in enumerate(calls)] == ["", "", IN_VAIN]


def test_the_same_words_are_said_once_and_not_many() -> None:
    run = Run()
    said = [run.call("speak", {"text": text}) for text in ("Done", "Done ", "done!", "Two", "Three", "Four")]
    assert said == ["ran", SAID, SAID, "ran", "ran", SAID_ENOUGH]


def test_replies_whose_calls_all_failed_are_counted() -> None:
    run = Run()
    for number in range(4):
        run.call("look", {"path": f"file {number}"}, failed=True)
    assert run.guard.failures == 4
    run.looks("a")
    assert run.guard.failures == 0


def test_one_success_in_a_reply_ends_the_count() -> None:
    guard = LoopGuard()
    for position, failed in enumerate((True, False)):
        guard.admit(1, position, ToolUse(id=str(position), name="look", arguments={"at": position}), TOOLS["look"])
        guard.note(position, "answer", failed=failed)
    assert guard.failures == 0


def test_blocks_are_counted_whatever_comes_between() -> None:
    run = Run()
    run.looks("aaabacada", "xxx1x2x3x")
    assert run.guard.blocks == 4
    assert run.guard.failures == 1


def test_replies_with_one_tool_and_nothing_new_are_counted_from_the_last_news() -> None:
    run = Run()
    for number in range(25):
        run.call("note", {"title": str(number)}, "true")
    assert run.guard.same_tool == ("note", 1)
    run.looks("abc", "xxx")
    assert run.guard.same_tool == ("look", 3)
    run.looks("d", "y")
    assert run.guard.same_tool == ("look", 1)


def test_it_stays_small() -> None:
    run = Run()
    for number in range(20):
        run.call("note", {"title": "long " * 1000 + str(number)}, "true")
    assert len(run.guard.model_dump_json(exclude_defaults=True)) < 4_000
