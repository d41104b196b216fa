"""Tool calls that run at once, break off, hang, are cut by a crash: each has one result, and no effect comes twice."""

import threading
from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest
from django.db import connections as database, transaction
from pytest_django import Settings

from agents import services
from agents.engine import jobs, journal
from agents.engine.leases import leases
from agents.models import ModelCall
from agents.stopping import stop_run
from goals.models import Goal
from memory.models import AgentRun, HistoryEntry, Note, RunStatus, ThreadMessage
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet, cells, run_of, wait_until, work_in_thread
from tests.agents.engine.test_recovery import expire_leases
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.world import Killed, Upsert, World
from tools.base import Risk
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]
type Call = tuple[str, dict[str, object]]


def post(text: str, then: str = "") -> Call:
    return "post", {"text": text, "then": then}


def slow(name: str, seconds: float) -> Call:
    return "slow", {"name": name, "seconds": seconds}


def answers(llm: LLMServer) -> list[str]:
    """The tool results in the last request."""
    return [message["content"] for message in llm.requests[-1].messages if message["role"] == "tool"]


def statuses() -> list[str]:
    return list(AgentAction.objects.order_by("step", "position").values_list("status", flat=True))


def results_in_history(goal: Goal) -> list[str]:
    entries = HistoryEntry.objects.filter(thread=goal.thread, role="tool")
    return [block["id"] for entry in entries for block in entry.blocks]


def die(run_id: UUID) -> None:
    with pytest.raises(Killed):
        jobs.run(str(run_id))
    expire_leases()


def taken_over(run_id: UUID, llm: LLMServer, hold: threading.Event) -> None:
    """Another worker claims the run and ends it while its first worker, which waits for its model, thinks it has it."""
    first = threading.Thread(target=work_in_thread, args=(run_id,))
    first.start()
    wait_until(lambda: len(llm.requests) == 1, 20)
    expire_leases()
    jobs.run(str(run_id))
    hold.set()
    first.join(timeout=20)
    assert not first.is_alive()


def begin(goal: Goal, rung: list[UUID]) -> UUID:
    services.send_message(goal.thread, "Go")
    return rung.pop()


def test_calls_of_one_reply_run_at_once_and_their_results_keep_their_order(
    goal: Goal, say: Say, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[slow("a", 0.6), slow("b", 0.3), slow("c", 0.01)]), Reply(text="Done.")])
    say("Go")
    assert [event[0] for event in world.events] == ["begin"] * 3 + ["end"] * 3
    assert world.texts("end") == ["c", "b", "a"]
    assert answers(llm) == ["Waited 0.6 s.", "Waited 0.3 s.", "Waited 0.01 s."]
    assert_quiet(goal, llm)


def test_local_and_unsafe_calls_run_alone_and_in_order(goal: Goal, say: Say, llm: LLMServer, world: World) -> None:
    unsafe = ("slow_down", {"seconds": 0.05, "name": "b"})
    llm.script([Reply(calls=[slow("a", 0.2), unsafe, NOTE, slow("c", 0.05)]), Reply(text="Done.")])
    say("Go")
    assert [(what, text) for what, _, text in world.events] == [
        (what, name) for name in ("a", "b", "c") for what in ("begin", "end")
    ]
    assert Note.objects.count() == 1
    assert_quiet(goal, llm)


def test_at_most_so_many_calls_run_at_once(
    goal: Goal, say: Say, llm: LLMServer, world: World, settings: Settings
) -> None:
    settings.WAYMARK_PARALLEL_TOOLS = 2
    llm.script([Reply(calls=[slow(str(n), 0.1) for n in range(6)]), Reply(text="Done.")])
    say("Go")
    running = most = 0
    for what, _, _ in world.events:
        running += 1 if what == "begin" else -1
        most = max(most, running)
    assert most == 2
    assert_quiet(goal, llm)


def test_f5_a_tool_that_hangs_is_left_behind_and_the_run_goes_on(
    goal: Goal, say: Say, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("slow_down", {"seconds": 30}), post("x", "hang 30")]), Reply(text="Too slow.")])
    run = say("Go")
    assert run.status == RunStatus.SUCCEEDED
    assert statuses() == ["error", "unknown"]
    assert "timed out after 0.3 s" in answers(llm)[0]
    assert "timed out after 0.5 s" in answers(llm)[1]
    assert "may have taken effect" in answers(llm)[1]
    assert_quiet(goal, llm)


def test_f5_a_local_tool_that_hangs_loses_its_lease(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    """Nothing can interrupt it, so its lease is not renewed and another worker goes on; its own effect is void."""

    def hang(request: object) -> Reply:
        (held,) = leases.held.values()
        with held.within(0):
            leases.fence_off()
        assert held.lost
        return Reply(calls=[NOTE])

    llm.script([hang, Reply(calls=[NOTE]), Reply(text="Noted.")])
    run_id = begin(goal, rung)
    jobs.run(str(run_id))
    assert not Note.objects.exists()
    expire_leases()
    jobs.run(str(run_id))
    assert Note.objects.count() == 1
    assert_quiet(goal, llm)


def test_con_04_a_a_lost_answer_is_an_unknown_outcome_and_not_a_second_delivery(
    goal: Goal, say: Say, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[post("hello", "drop")]), Reply(text="I do not know whether it went out.")])
    assert say("Go").status == RunStatus.SUCCEEDED
    assert world.texts("post") == ["hello"]
    assert statuses() == ["unknown"]
    assert "Do not repeat it without checking" in answers(llm)[0]
    assert_quiet(goal, llm)


def test_con_04_b_a_late_answer_is_an_unknown_outcome_and_changes_nothing(
    goal: Goal, say: Say, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[post("hello", "hang 1.5")]), Reply(text="Unknown.")])
    say("Go")
    before = list(HistoryEntry.objects.values_list("seq", "blocks"))
    threading.Event().wait(1.5)
    assert world.texts("post") == ["hello"]
    assert statuses() == ["unknown"]
    assert list(HistoryEntry.objects.values_list("seq", "blocks")) == before
    assert_quiet(goal, llm)


def test_con_04_a_tools_own_refusal_is_an_error_and_not_an_unknown_outcome(
    goal: Goal, say: Say, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[post("hello", "fail")]), Reply(text="Wrong address.")])
    say("Go")
    assert statuses() == ["error"]
    assert not world.events


def test_con_04_c_a_crash_after_delivery_leaves_a_question_and_not_a_second_delivery(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[post("hello", "crash")]), Reply(text="I cannot tell.")])
    run_id = begin(goal, rung)
    die(run_id)
    jobs.run(str(run_id))
    run = AgentRun.objects.get(pk=run_id)
    assert (run.status, run.recoveries, run.step) == (RunStatus.SUCCEEDED, 1, 2)
    assert world.texts("post") == ["hello"]
    assert statuses() == ["unknown"]
    assert "no result was recorded" in answers(llm)[0]
    assert len(llm.requests) == 2
    assert_quiet(goal, llm)


def test_con_04_d_a_worker_whose_lease_is_over_does_not_begin_the_call(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    hold = threading.Event()
    first = Reply(text="Let me see.", calls=[post("hello")], hold=hold)
    llm.script([first, Reply(calls=[post("hello")]), Reply(text="Sent.")])
    run_id = begin(goal, rung)
    taken_over(run_id, llm, hold)
    assert world.texts("post") == ["hello"]
    assert AgentRun.objects.get(pk=run_id).status == RunStatus.SUCCEEDED
    assert_quiet(goal, llm)


def test_his_01_what_was_done_keeps_its_result_and_what_was_open_has_one(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    p1, p2 = post("first"), post("second", "crash")
    llm.script([Reply(calls=[p1, ("slow_down", {"seconds": 0}), p2]), Reply(text="Halfway.")])
    run_id = begin(goal, rung)
    die(run_id)
    assert statuses() == ["done", "started", "started"]

    jobs.run(str(run_id))

    assert world.texts("post") == ["first", "second"]
    assert statuses() == ["done", "done", "unknown"]
    assert answers(llm)[0] == "Sent first."
    assert "may have taken effect" in answers(llm)[2]
    assert len(results_in_history(goal)) == len(set(results_in_history(goal))) == 3
    assert_quiet(goal, llm)


def test_his_01_a_the_next_message_after_a_crash_is_answered(
    goal: Goal, rung: list[UUID], say: Say, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[post("first"), post("second", "crash")])])
    run_id = begin(goal, rung)
    die(run_id)
    llm.script([Reply(text="Halfway.")])
    services.send_message(goal.thread, "ping")
    jobs.run(str(run_id))
    roles = list(HistoryEntry.objects.filter(thread=goal.thread).values_list("role", flat=True))
    assert roles == ["user", "assistant", "tool", "tool", "user", "assistant"], "the results stand before the message"
    assert "<time>" in llm.requests[-1].messages[-1]["content"]
    say("ping")
    assert cells(goal)[-1][2] == "pong"
    assert_quiet(goal, llm)


def test_an_idempotent_call_is_repeated_with_the_same_key(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("upsert", {"text": "row", "then": "crash"})]), Reply(text="Saved.")])
    run_id = begin(goal, rung)
    die(run_id)
    jobs.run(str(run_id))
    assert len(world.calls("upsert")) == 2
    assert len(set(world.calls("upsert"))) == 1
    assert world.calls("upsert")[0] == str(AgentAction.objects.get().pk)
    assert statuses() == ["done"]
    assert_quiet(goal, llm)


def test_a_verifiable_call_is_looked_up_after_a_crash(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("book", {"text": "table", "then": "crash"})]), Reply(text="Booked.")])
    run_id = begin(goal, rung)
    die(run_id)
    jobs.run(str(run_id))
    assert world.texts("book") == ["table"]
    assert (statuses(), answers(llm)) == (["done"], ["Found table."])
    assert_quiet(goal, llm)


def test_a_verifiable_call_that_did_not_happen_runs_again(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[("book", {"text": "table", "then": "crash"})]), Reply(text="Booked.")])
    run_id = begin(goal, rung)
    die(run_id)
    world.path.unlink()
    with pytest.raises(Killed):
        jobs.run(str(run_id))
    assert world.texts("book") == ["table"]


def test_a_local_effect_whose_commit_is_lost_comes_once(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ways: the link breaks before the commit has arrived, and after it."""
    real, broken = transaction.Atomic.__exit__, iter(["after", "before"])

    def lossy(self: transaction.Atomic, *error: object) -> None:
        connection = database["default"]
        commits = not error[0] and not connection.savepoint_ids
        when = next(broken, "") if commits and Note.objects.filter(title="Shoes").exists() else ""
        if when == "before":
            connection.connection.close()
        real(self, *error)  # type: ignore[arg-type]
        if when == "after":
            raise psycopg.OperationalError("the connection is lost")

    llm.script([Reply(calls=[NOTE]), Reply(calls=[("create_note", {"title": "Socks", "body": ""})]), Reply(text="Ok")])
    with monkeypatch.context() as patched:
        patched.setattr(transaction.Atomic, "__exit__", lossy)
        run = say("Go")
    assert run.status == RunStatus.SUCCEEDED
    assert sorted(Note.objects.values_list("title", flat=True)) == ["Shoes", "Socks"]
    assert statuses() == ["done", "done"]
    assert (run.step, ModelCall.objects.count()) == (3, 3)
    assert_quiet(goal, llm)


def test_a_run_that_had_spoken_when_its_worker_died_does_not_speak_again(
    goal: Goal, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*args: object, **kwargs: object) -> None:
        raise Killed

    llm.script([Reply(calls=[("send_message", {"text": "All done"})])])
    run_id = begin(goal, rung)
    with monkeypatch.context() as patched, pytest.raises(Killed):
        patched.setattr(journal, "final", killed)
        jobs.run(str(run_id))
    expire_leases()
    jobs.run(str(run_id))
    assert AgentRun.objects.get(pk=run_id).status == RunStatus.SUCCEEDED
    assert len(llm.requests) == 1
    assert [text for source, _, text in cells(goal) if source == "agent" and text] == ["All done"]
    assert_quiet(goal, llm)


def test_a_model_call_that_was_open_is_settled_at_unknown_cost_and_repeated_in_its_step(
    goal: Goal, rung: list[UUID], llm: LLMServer
) -> None:
    hold = threading.Event()
    llm.script([Reply(text="too late", hold=hold), Reply(text="Here I am.")])
    run_id = begin(goal, rung)
    taken_over(run_id, llm, hold)
    calls = ModelCall.objects.order_by("created_at").values_list("step", "status", "cost")
    assert [(step, status) for step, status, _ in calls] == [(0, "failed"), (0, "done")]
    run = AgentRun.objects.get(pk=run_id)
    assert not run.cost_known
    assert run.step == 1
    assert cells(goal)[-1][2] == "Here I am."
    assert_quiet(goal, llm)


def test_an_identical_call_after_an_unknown_outcome_needs_approval(
    goal: Goal, say: Say, llm: LLMServer, world: World
) -> None:
    llm.script([Reply(calls=[post("a", "drop")]), Reply(calls=[post("b"), post("a", "drop")])])
    run = say("Go")
    assert run.status == RunStatus.WAITING_APPROVAL
    assert world.texts("post") == ["a", "b"]
    action = AgentAction.objects.get(status="intent")
    assert (action.approval.cause, action.approval.state) == ("repeats_unknown", "requested")


def test_his_02_a_stop_among_parallel_calls_leaves_one_result_each_and_closes_the_approval(
    goal: Goal, rung: list[UUID], llm: LLMServer, world: World
) -> None:
    email = ("send_email", {"text": "hello"})
    llm.script([Reply(calls=[slow("short", 0.1), slow("long", 15), email])])
    accepted = services.send_message(goal.thread, "Go")
    worker = threading.Thread(target=work_in_thread, args=(rung.pop(),))
    worker.start()
    wait_until(lambda: len(world.texts("begin")) == 2 and len(world.texts("end")) == 1)
    stop_run(run_of(accepted))
    leases.renew()
    worker.join(timeout=10)
    assert not worker.is_alive(), "it does not wait for the call that ignores the stop"
    run = run_of(accepted)
    assert (run.status, run.reason) == (RunStatus.CANCELLED, "stopped")
    assert statuses() == ["done", "cancelled", "cancelled"]
    assert AgentAction.objects.get(tool="send_email").approval.state == "cancelled"
    assert "Done before that: waited" in cells(goal)[-1][2]
    assert "Not done: wait; send “hello”" in cells(goal)[-1][2]
    before = list(HistoryEntry.objects.values_list("seq", "blocks"))
    assert len(results_in_history(goal)) == len(set(results_in_history(goal))) == 3
    wait_until(lambda: len(world.texts("end")) == 2)
    assert list(HistoryEntry.objects.values_list("seq", "blocks")) == before, "the late result changes nothing"
    assert not world.texts("send_email")
    services.send_message(goal.thread, "ping")
    jobs.run(str(rung.pop()))
    assert cells(goal)[-1][2] == "pong"
    assert not ThreadMessage.objects.filter(processed=False).exists()
    assert_quiet(goal, llm)


def test_a_forbidden_tool_is_not_executed_after_a_crash_either(
    goal: Goal, llm: LLMServer, rung: list[UUID], world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Upsert, "risk", Risk.FORBIDDEN)
    calls: list[Call] = [("upsert", {"text": "a"}), post("b", then="crash")]
    llm.script([Reply(calls=calls), Reply(text="Done.")])
    run_id = begin(goal, rung)
    die(run_id)
    assert statuses()[0] == "intent"
    jobs.run(str(run_id))
    assert statuses()[0] == "denied"
    assert not world.texts("upsert")
    assert "forbidden" in answers(llm)[0]
