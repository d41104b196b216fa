"""Runs that turn in circles, fail on and on, or write their calls as text (cases LOO-01 to LOO-04)."""

import itertools
from collections.abc import Callable, Mapping
from uuid import UUID

import pytest
from pytest_django import Settings

from agents import services
from agents.engine import jobs
from agents.models import AgentTask
from agents.stopping import stop_run
from goals.models import Goal
from memory import pool
from memory.models import AgentRun, Note, ThreadMessage
from tests.agents.engine.test_calls import answers, die, post, statuses
from tests.agents.engine.test_orchestrator import assert_quiet, cells
from tests.llm_script import Json, Reply, Request, Scripted
from tests.llm_server import LLMServer
from tests.world import World
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]
type Call = tuple[str, Json]

LIST: Call = ("list_notes", {})
CALL = '{"name": "create_note", "arguments": {"title": "Shoes", "body": "New ones"}}'


def note(title: str) -> Call:
    return "create_note", {"title": title, "body": "…"}


def read(query: str) -> Call:
    return "search_notes", {"query": query}


def always(*calls: tuple[str, Json | str]) -> list[Scripted]:
    """Replies with one call each, in turn, without end."""
    return [Reply(calls=[call]) for call, _ in zip(itertools.cycle(calls), range(30), strict=False)]


def last_words(goal: Goal) -> tuple[str, str]:
    message = ThreadMessage.objects.filter(thread=goal.thread).last()
    assert message
    return message.source, message.content


def executed() -> int:
    return AgentAction.objects.filter(status="done").count()


def test_loo_01_a_the_same_call_again_and_again_is_warned_of_blocked_and_ends_the_run(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    llm.script(always(read("a.txt")))

    run = say("Read it")

    assert (run.status, run.reason) == ("failed", "same_tool")
    assert "5 times in a row" in run.error
    assert last_words(goal) == ("error", run.error)
    assert statuses() == ["done", "done", "error", "error", "error"]
    told = answers(llm)
    assert "twice" not in told[0]
    assert "A third time it will not be executed" in told[1]
    assert told[2].startswith("Error: Not executed: you have made this call before")
    assert_quiet(goal, llm)


def test_loo_01_b_order_of_keys_and_spaces_make_no_difference(goal: Goal, say: Say, llm: LLMServer) -> None:
    spellings = ('{"title":"a","body":"b"}', '{ "body" : "b",  "title" : "a" }', '{"body":"b","title":"a"}')
    llm.script(always(*(("create_note", spelling) for spelling in spellings)))

    run = say("Note it")

    assert run.status == "failed"
    assert Note.objects.count() == 2
    assert run.step <= 7
    assert_quiet(goal, llm)


def test_loo_01_c_many_notes_with_different_titles_are_no_loop(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_MAX_ITERATIONS = 30
    llm.script([*(Reply(calls=[note(f"Title {number}")]) for number in range(25)), Reply(text="All noted.")])

    run = say("Note them")

    assert (run.status, run.reason) == ("succeeded", "")
    assert Note.objects.count() == 25
    assert not any("twice" in answer for answer in answers(llm))
    assert_quiet(goal, llm)


def test_loo_01_d_a_look_after_each_change_is_no_loop(goal: Goal, say: Say, llm: LLMServer, world: World) -> None:
    looks = (Reply(calls=[post("git status")]) for _ in range(6))
    changes = (Reply(calls=[("upsert", {"text": f"version {number}"})]) for number in range(6))
    pairs = zip(looks, changes, strict=True)
    llm.script([*(reply for pair in pairs for reply in pair), Reply(text="Clean.")])

    run = say("Work")

    assert run.status == "succeeded"
    assert world.texts("post") == ["git status"] * 6


@pytest.mark.parametrize("calls", [(read("a"), LIST), (read("a"), LIST, read("b"))])
def test_loo_02_circles_of_two_and_three_end_with_a_reason(
    goal: Goal, say: Say, llm: LLMServer, calls: tuple[Call, ...]
) -> None:
    llm.script(always(*calls))

    run = say("Read them")

    assert (run.status, run.reason) == ("failed", "loop")
    assert "circles" in last_words(goal)[1]
    assert AgentAction.objects.count() <= 12
    assert_quiet(goal, llm)


def test_loo_02_c_a_run_whose_calls_are_blocked_again_and_again_ends(goal: Goal, say: Say, llm: LLMServer) -> None:
    a, b = read("a"), LIST
    plain, stubborn = itertools.cycle([a, b]), itertools.cycle([b, b, a])

    def mind(request: Request) -> Reply:
        """Once a call is blocked: twice the blocked one, then the other."""
        is_blocked = any("Not executed" in str(message["content"]) for message in request.messages)
        return Reply(calls=[next(stubborn if is_blocked else plain)])

    llm.script([mind] * 30)

    run = say("Read them")

    assert (run.status, run.reason) == ("failed", "loop")
    assert run.step <= 12
    assert_quiet(goal, llm)


def test_what_a_run_has_called_is_known_to_its_next_worker(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    again, dies = Reply(calls=[post("x")]), Reply(calls=[post("y", "crash")])
    llm.script([again, again, dies, again, Reply(text="Enough.")])
    services.send_message(goal.thread, "Do it")

    die(rung.pop(0))
    jobs.run(str(AgentRun.objects.get().pk))

    assert world.texts("post") == ["x", "x", "y"]
    assert statuses() == ["done", "done", "unknown", "error"]
    assert "Not executed" in answers(llm)[-1]


def test_a_blocked_call_is_not_executed_by_the_worker_that_takes_the_step_over(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    again = ("upsert", {"text": "x"})
    llm.script([*always(again)[:2], Reply(calls=[again, post("y", "crash")]), Reply(text="Enough.")])
    services.send_message(goal.thread, "Do it")

    die(rung.pop(0))
    jobs.run(str(AgentRun.objects.get().pk))

    assert world.texts("upsert") == ["x", "x"]
    assert "Not executed" in answers(llm)[-2]


def test_five_replies_in_a_row_whose_calls_fail_are_a_stall_which_the_parent_is_told_of(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    task = ("create_task", {"title": "Notes", "instructions": "Write blank notes"})
    llm.script([Reply(calls=[task]), Reply(text="A helper is on it."), Reply(text="The helper got stuck.")], "Go")
    llm.script([Reply(calls=[("create_note", {"title": " " * n, "body": ""})]) for n in range(9)], "Write blank notes")

    say("Go")

    run = AgentRun.objects.get(trigger="task")
    assert (run.status, run.reason) == ("failed", "stalled")
    child = AgentTask.objects.get()
    assert child.status == "paused"
    assert "5 tool calls in a row failed" in child.result
    assert any("5 tool calls in a row failed" in content for _, _, content in cells(goal)), (
        "told in the parent's thread"
    )
    assert last_words(goal) == ("agent", "The helper got stuck.")
    assert_quiet(goal, llm)


def test_the_model_is_told_at_its_next_turn_why_it_was_cut(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_MAX_ITERATIONS = 1
    llm.script([Reply(calls=[note("One")]), Reply(text="Going on.")])

    say("Note two things")
    say("Go on")

    words = [message for message in llm.requests[-1].messages if message["role"] == "assistant"][-1]["content"]
    assert "ended early" in words
    assert "1 steps" in words
    assert not any("ended early" in content for _, _, content in cells(goal))
    assert_quiet(goal, llm)


def test_the_model_is_told_that_the_user_has_stopped_it(goal: Goal, rung: list[UUID], say: Say, llm: LLMServer) -> None:
    accepted = services.send_message(goal.thread, "Write a novel")
    assert accepted.run_id
    stop_run(AgentRun.objects.get(pk=accepted.run_id))
    jobs.run(str(rung.pop()))
    rung.clear()
    llm.script([Reply(text="Right.")])

    say("A poem will do")

    roles = [message["role"] for message in llm.requests[-1].messages]
    assert roles == ["system", "user", "assistant", "user"]
    assert "The user stopped you" in llm.requests[-1].messages[2]["content"]
    assert_quiet(goal, llm)


def test_loo_03_a_an_agent_that_only_sends_messages_sends_one(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[("send_message", {"text": f"Done, version {n}"})]) for n in range(9)])

    run = say("Do it")

    assert run.status == "succeeded"
    assert cells(goal)[1:] == [("agent", "tool", ""), ("agent", "text", "Done, version 0")]


def test_loo_03_many_messages_in_one_reply_are_few_for_the_user(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[("send_message", {"text": f"Version {n}"}) for n in range(6)])])

    say("Do it")

    assert [content for _, kind, content in cells(goal)[1:] if kind == "text"] == [f"Version {n}" for n in range(3)]
    assert_quiet(goal, llm)


def test_loo_03_b_the_same_text_is_delivered_once(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[("send_message", {"text": text}) for text in ("Done", "Done", " Done ")])])

    say("Do it")

    assert [content for _, kind, content in cells(goal)[1:] if kind == "text"] == ["Done"]
    assert statuses() == ["done", "error", "error"]
    assert_quiet(goal, llm)


def test_loo_03_c_a_message_with_the_same_words_beside_it_is_shown_once(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="Done", calls=[("send_message", {"text": "Done"})]), Reply(text="Done")])

    say("Do it")

    assert [content for _, kind, content in cells(goal)[1:] if kind == "text"] == ["Done"]
    assert len(llm.requests) == 1


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>{CALL}</tool_call>",
        f"\n<tool_call>\n{CALL}\n</tool_call>\n",
        CALL.replace("arguments", "parameters"),
    ],
)
def test_loo_04_a_b_a_call_written_as_text_is_made(goal: Goal, say: Say, llm: LLMServer, text: str) -> None:
    llm.script([Reply(text=text), Reply(text="Noted.")])

    say("Note it")

    assert Note.objects.get().title == "Shoes"
    assert cells(goal)[1:] == [("agent", "tool", ""), ("agent", "text", "Noted.")]
    assert [message["role"] for message in llm.requests[-1].messages][-2:] == ["assistant", "tool"]
    assert_quiet(goal, llm)


def test_loo_04_a_model_that_writes_nothing_but_calls_is_stopped(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text=f"<tool_call>{CALL}</tool_call>")] * 30)

    run = say("Note it")

    assert run.status == "failed"
    assert Note.objects.count() == 2
    assert not any("tool_call" in content for _, _, content in cells(goal))


def test_loo_04_a_written_call_needs_the_same_approval(goal: Goal, say: Say, llm: LLMServer, world: World) -> None:
    llm.script([Reply(text='{"name": "send_email", "arguments": {"text": "hi"}}')])

    run = say("Mail it")

    assert run.status == "waiting_approval"
    assert not world.events


@pytest.mark.parametrize(
    "text",
    [
        f"```\n<tool_call>{CALL}</tool_call>\n```",
        f"A call looks so: <tool_call>{CALL}</tool_call>",
        f"<tool_call>{CALL}</tool_call> is how it looks.",
        '{"name": "no_such_tool", "arguments": {}}',
        '{"name": "create_note", "arguments": "{}"}',
        '{"name": "create_note", "arguments": {}, "note": "an example"}',
    ],
)
def test_loo_04_c_examples_of_calls_are_answers(goal: Goal, say: Say, llm: LLMServer, text: str) -> None:
    llm.script([Reply(text=text)])

    say("How does a call look?")

    assert last_words(goal) == ("agent", text)
    assert not AgentAction.objects.exists()


def test_loo_04_d_what_a_tool_has_read_is_never_made_a_call(goal: Goal, say: Say, llm: LLMServer) -> None:
    Note.objects.create(user=goal.user, thread=goal.thread, title="A page", body=f"<tool_call>{CALL}</tool_call>")
    llm.script([Reply(calls=[read("tool_call")]), Reply(text=f"<tool_call>{CALL}</tool_call>")])

    say("What does the page say?")

    assert Note.objects.count() == 1
    assert last_words(goal)[0] == "agent"


def test_the_guard_is_kept_without_a_commit_of_its_own(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    execute = pool.execute

    def counted(sql: str, parameters: Mapping[str, object]) -> list[pool.Row]:
        statements.append(sql)
        return execute(sql, parameters)

    monkeypatch.setattr(pool, "execute", counted)
    llm.script([Reply(calls=[read("a")]), Reply(text="Done.")])

    run = say("Read")

    (kept,) = [sql for sql in statements if "guard = " in sql]
    assert "UPDATE agent_actions" in kept, "the outcome of the call is in the same statement"
    assert run.guard["now"]
