"""CoreLoop alone: a scripted thinker, a dict for a toolbox, no database."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field

import pytest

from agents.engine.limits import Limiter, LimitReached
from agents.engine.loop import Acted, CoreLoop, LoopEvent, Replied
from agents.engine.loop_guard import LoopGuard
from agents.providers.base import Finish, Reply, TextDelta, ThinkingDelta, Usage
from memory.messages import Message, ToolResult, ToolUse, assistant, tool, user


@dataclass
class Answers:
    messages: list[Message]
    said: bool = False


@dataclass
class Script:
    """A thinker that gives its replies in order, and a toolbox that answers every call with its name."""

    replies: list[Message]
    waiting: list[Message] = field(default_factory=list)
    seen: list[list[Message]] = field(default_factory=list)
    fails: bool = False
    guard: LoopGuard = field(default_factory=LoopGuard)

    def think(self, messages: Sequence[Message]) -> Generator[TextDelta | ThinkingDelta, None, Reply]:
        self.seen.append(list(messages))
        message = self.replies.pop(0)
        if message.text:
            yield TextDelta(message.text)
        return Reply(message, Usage(1, 1), Finish.STOP)

    def act(self, calls: Sequence[ToolUse]) -> Answers:
        for position, each in enumerate(calls):
            self.guard.admit(len(self.seen), position, each, None)
            self.guard.note(position, f"did {each.name}", failed=self.fails)
        results = [tool(ToolResult(id=call.id, content=f"did {call.name}")) for call in calls]
        return Answers(results, said=any(call.name == "send_message" for call in calls))

    def inbox(self) -> list[Message]:
        taken, self.waiting = self.waiting, []
        return taken


def call(name: str, number: int = 1, problem: str | None = None) -> Message:
    return assistant("", [ToolUse(id=f"{name}{number}", name=name, arguments={}, problem=problem)])


def events(
    script: Script, *, ends_after_message: bool = True, iterations: int = 20, history_entries: int | None = None
) -> list[LoopEvent]:
    limiter = Limiter(iterations, 600, 5, 5, history_entries, script.guard)
    loop = CoreLoop([user("go")], script.think, script.act, script.inbox, limiter, ends_after_message)
    return list(loop.run())


def kinds(happened: list[LoopEvent]) -> list[str]:
    return [type(event).__name__ for event in happened]


def test_it_ends_when_the_model_calls_no_tool() -> None:
    happened = events(Script([assistant("Done")]))
    assert kinds(happened) == ["TextDelta", "Replied"]


def test_results_go_back_to_the_model_in_the_next_step() -> None:
    script = Script([call("look"), assistant("Found it")])
    assert kinds(events(script)) == ["Replied", "Acted", "TextDelta", "Replied"]
    assert [message.role for message in script.seen[1]] == ["user", "assistant", "tool"]


def test_speaking_to_the_user_ends_the_run_of_an_agent_that_converses() -> None:
    happened = events(Script([call("send_message")]))
    assert happened[-1] == Acted(last=True)


def test_speaking_does_not_end_the_run_of_an_agent_that_works_alone() -> None:
    happened = events(Script([call("send_message"), assistant("Report")]), ends_after_message=False)
    assert isinstance(happened[-1], Replied)


def test_messages_that_came_meanwhile_are_answered_in_the_next_step() -> None:
    script = Script([call("look"), assistant("Both answered")], waiting=[user("and this?")])
    events(script)
    assert [message.text for message in script.seen[1] if message.role == "user"] == ["go", "and this?"]


def test_it_stops_after_the_most_steps_a_run_may_take() -> None:
    script = Script([call(f"tool{number}", number) for number in range(9)])
    with pytest.raises(LimitReached) as reached:
        events(script, iterations=3)
    assert reached.value.reason == "iterations"
    assert len(script.seen) == 3


def test_it_stops_when_one_tool_is_used_five_times_in_a_row_and_brings_nothing_new() -> None:
    script = Script([call("look", number) for number in range(9)])
    with pytest.raises(LimitReached) as reached:
        events(script)
    assert reached.value.reason == "same_tool"
    assert len(script.seen) == 5


def test_another_tool_in_between_starts_the_count_anew() -> None:
    names = ["look", "look", "look", "look", "note", "look", "look"]
    script = Script([*(call(name, number) for number, name in enumerate(names)), assistant("Done")])
    assert isinstance(events(script)[-1], Replied)


def test_it_is_stalled_when_five_replies_in_a_row_had_only_calls_that_failed() -> None:
    script = Script([call(f"tool{number}", number) for number in range(9)], fails=True)
    with pytest.raises(LimitReached) as reached:
        events(script)
    assert reached.value.reason == "stalled"
    assert len(script.seen) == 5


def test_a_task_stops_when_its_history_is_full() -> None:
    script = Script([call(f"tool{number}", number) for number in range(30)])
    with pytest.raises(LimitReached) as reached:
        events(script, history_entries=20)
    assert reached.value.reason == "history"


def test_it_stops_when_its_time_is_over() -> None:
    now = iter([0.0, 1.0, 601.0])
    script = Script([call("look"), assistant("too late")])
    limiter = Limiter(20, 600, 5, 5, None, script.guard, clock=lambda: next(now))
    with pytest.raises(LimitReached) as reached:
        list(CoreLoop([user("go")], script.think, script.act, script.inbox, limiter, True).run())
    assert reached.value.reason == "time"
    assert "10 minutes" in reached.value.message


def test_prv_04_three_malformed_replies_in_a_row_end_the_run() -> None:
    script = Script([call(f"tool{number}", number, problem="cut off") for number in range(9)])
    with pytest.raises(LimitReached) as reached:
        events(script)
    assert reached.value.reason == "broken_calls"
    assert len(script.seen) == 3
