"""A model that fails is asked again: at once under the lease, later without one, and not for ever (mission B5)."""

import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone
from pytest_django import Settings

from agents import services
from agents.engine import jobs, sweeper
from agents.engine.leases import leases
from agents.models import AgentTask, ModelCall, TaskStatus
from agents.stopping import stop_run
from goals.models import Goal
from memory.models import AgentRun, RunStatus, ThreadMessage
from memory.pool import execute
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet, cells, run_of, work_in_thread
from tests.agents.engine.test_recovery import in_thread
from tests.llm_script import DONE, D, Drop, F, Hang, Raw, Reply, Status, Step, U
from tests.llm_server import LLMServer
from tools.cancel import CancelToken

type Say = Callable[[str], AgentRun]

OVERLOADED = Status(529, body={"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
TOO_FAST = Status(429, {"retry-after": "0"}, {"error": {"message": "slow down"}})
OUT_OF_CREDIT = {"error": {"code": "insufficient_quota", "type": "insufficient_quota", "message": "no credit"}}
PER_MINUTE = {
    "error": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "message": "Quota exceeded for requests per minute. Retry in 3s",
    }
}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The clock of a worker stands still: what it would have slept under its lease."""
    pauses: list[float] = []
    monkeypatch.setattr(CancelToken, "sleep", lambda self, seconds: pauses.append(seconds))
    return pauses


def the_wait() -> float:
    """Seconds from the end of the failed call to when the run goes on, by PostgreSQL's clock."""
    sql = """SELECT extract(epoch FROM due_at - (SELECT max(finished_at) FROM agents_modelcall))
      FROM memory_agentrun WHERE status = 'retry_wait'"""
    return float(execute(sql, {})[0][0])


def let_it_come_due() -> None:
    AgentRun.objects.filter(status=RunStatus.RETRY_WAIT).update(due_at=timezone.now() - timedelta(seconds=1))


def work_on(rung: list[UUID]) -> None:
    while rung:
        jobs.run(str(rung.pop(0)))


def notices(goal: Goal) -> list[ThreadMessage]:
    return list(ThreadMessage.objects.filter(thread=goal.thread, source="error"))


@pytest.mark.parametrize(
    ("headers", "body", "held"),
    [
        pytest.param({"Retry-After": "7"}, {}, [7, 7], id="a"),
        pytest.param({"Retry-After": "1.5"}, {}, [1.5, 2], id="b"),
        pytest.param({"Retry-After": "Wed, 02 Dec 2026 08:59:00 GMT"}, {}, [1.5, 1.5], id="e"),
        pytest.param({"Retry-After": "null"}, {}, [1.5, 1.5], id="f-null"),
        pytest.param({"Retry-After": ""}, {}, [1.5, 1.5], id="f-empty"),
        pytest.param({"Retry-After": "soon"}, {}, [1.5, 1.5], id="f-soon"),
        pytest.param({"retry-after-ms": "250", "Retry-After": "1"}, {}, [0.25, 1], id="h"),
        pytest.param({}, PER_MINUTE, [1.5, 1.5], id="j"),
    ],
)
def test_prv_06_short_waits_hold_the_lease(
    goal: Goal,
    say: Say,
    llm: LLMServer,
    pauses: list[float],
    headers: dict[str, str],
    body: dict[str, object],
    held: list[float],
) -> None:
    now = {"Date": "Wed, 02 Dec 2026 09:00:00 GMT"}
    llm.script([Status(429, now | headers, body or {"error": {"message": "slow down"}}), Reply(text="ok")])
    assert say("Hi").status == RunStatus.SUCCEEDED
    assert cells(goal)[-1] == ("agent", "text", "ok")
    (pause,) = pauses
    assert held[0] <= pause <= held[1]
    assert_quiet(goal, llm)


@pytest.mark.parametrize(
    "date",
    [
        pytest.param("Wed, 02 Dec 2026 09:00:30 GMT", id="c"),
        pytest.param("Wednesday, 02-Dec-26 09:00:30 GMT", id="d"),
        pytest.param("Wed Dec  2 09:00:30 2026", id="asctime"),
    ],
)
def test_prv_06_a_date_is_read_by_the_vendors_clock_and_waited_for_without_a_lease(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], date: str
) -> None:
    headers = {"Date": "Wed, 02 Dec 2026 09:00:00 GMT", "Retry-After": date}
    llm.script([Status(429, headers, {"error": {"message": "slow down"}}), Reply(text="ok")])
    assert say("Hi").status == RunStatus.RETRY_WAIT
    assert 30 <= the_wait() <= 30 * 1.25 + 1
    let_it_come_due()
    assert sweeper.sweep() == 1
    work_on(rung)
    assert cells(goal)[-1] == ("agent", "text", "ok")
    assert_quiet(goal, llm)


def test_prv_06_g_a_day_is_not_waited_for_but_named(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Status(429, {"Retry-After": "86400"}, {"error": {"message": "come back tomorrow"}})])
    run = say("Hi")
    tomorrow = timezone.now() + timedelta(days=1)
    assert (run.status, run.reason) == (RunStatus.FAILED, "rate_limited")
    assert f"UTC on {tomorrow.day} {tomorrow:%B %Y}" in notices(goal)[0].content
    assert len(llm.requests) == 1
    assert_quiet(goal, llm)


def test_prv_06_i_out_of_credit_is_said_and_not_retried(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Status(429, body=OUT_OF_CREDIT)])
    run = say("Hi")
    assert (run.status, run.reason) == (RunStatus.FAILED, "out_of_credit")
    assert "no credit left" in notices(goal)[0].content
    assert len(llm.requests) == 1
    assert_quiet(goal, llm)


def test_prv_06_k_an_overloaded_server_is_asked_again_with_growing_waits(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], pauses: list[float]
) -> None:
    llm.script([OVERLOADED] * 4 + [Reply(text="ok")])
    run = say("Hi")
    assert pauses == [1.5, 1.5]
    assert (run.status, run.retries, run.lease_token) == (RunStatus.RETRY_WAIT, 1, None)
    assert 10 <= the_wait() <= 12.5 + 1
    let_it_come_due()
    sweeper.sweep()
    work_on(rung)
    assert 20 <= the_wait() <= 25 + 1
    assert pauses == [1.5, 1.5], "who comes back after a wait asks once"
    let_it_come_due()
    sweeper.sweep()
    work_on(rung)
    run = AgentRun.objects.get()
    assert (run.status, run.recoveries, run.step, run.retries) == (RunStatus.SUCCEEDED, 0, 1, 2)
    assert [call.status for call in ModelCall.objects.filter(run=run)] == ["failed"] * 4 + ["done"]
    assert cells(goal)[-1] == ("agent", "text", "ok")
    assert_quiet(goal, llm)


@pytest.mark.parametrize(
    ("step", "attempts"),
    [
        pytest.param(TOO_FAST, 1 + 2 + 5, id="429"),
        pytest.param(OVERLOADED, 1 + 2 + 2, id="529"),
        pytest.param(Status(503), 1 + 2 + 2, id="503"),
        pytest.param(Drop(), 1 + 2 + 3, id="reset"),
        pytest.param(Drop([D({"content": "Half an ans"})]), 1 + 2 + 3, id="broken"),
        pytest.param(Hang(0.05), 1 + 2 + 3, id="hang"),
        pytest.param(Status(400, body={"error": {"message": "bad capacity"}}), 1, id="400"),
        pytest.param(Status(401), 1, id="401"),
        pytest.param(Status(402), 1, id="402"),
        pytest.param(Status(403, body={"error": {"message": "rate limit"}}), 1, id="403"),
        pytest.param(Status(404), 1, id="404"),
        pytest.param(Status(413), 1, id="413"),
        pytest.param(Status(422), 1, id="422"),
    ],
)
def test_f13_each_class_of_failure_has_its_number_of_tries_and_none_is_early(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], pauses: list[float], step: Step, attempts: int
) -> None:
    llm.script([step] * 20)
    run = say("Hi")
    while run.status == RunStatus.RETRY_WAIT:
        assert the_wait() >= 10 * 2 ** (run.retries - 1)
        assert not sweeper.sweep(), "nobody rings before it is due"
        jobs.run(str(run.pk))
        assert AgentRun.objects.get().status == RunStatus.RETRY_WAIT, "nor can it be claimed"
        let_it_come_due()
        assert sweeper.sweep() == 1
        work_on(rung)
        run = AgentRun.objects.get()
    assert (run.status, len(llm.requests)) == (RunStatus.FAILED, attempts)
    assert len(notices(goal)) == 1, "one message, however often it was tried"
    waited = attempts > 1
    assert ("failed permanently" in notices(goal)[0].content) is waited
    assert notices(goal)[0].metadata["retryable"] is not waited
    assert_quiet(goal, llm)


def test_the_message_of_a_waiting_run_says_when_it_goes_on_and_is_replaced_in_place(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], pauses: list[float]
) -> None:
    llm.script([OVERLOADED] * 4)
    run = say("Hi")
    (first,) = notices(goal)
    assert (first.metadata["attempt"], first.metadata["of"], first.metadata["retryable"]) == (1, 2, True)
    assert first.metadata["next_at"][:19] == f"{run.due_at:%Y-%m-%dT%H:%M:%S}"
    let_it_come_due()
    sweeper.sweep()
    work_on(rung)
    (second,) = notices(goal)
    assert second.pk == first.pk
    assert second.position > first.position
    assert (second.metadata["attempt"], second.metadata["next_at"] > first.metadata["next_at"]) == (2, True)


def test_a_step_that_went_well_makes_up_for_the_tries_before_it(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], settings: Settings
) -> None:
    settings.WAYMARK_RETRY_HELD_TRIES = 0
    llm.script([*[OVERLOADED] * 2, Reply(calls=[NOTE]), *[OVERLOADED] * 2, Reply(text="ok")])
    say("Hi")
    for _ in range(4):
        let_it_come_due()
        sweeper.sweep()
        work_on(rung)
    assert cells(goal)[-1] == ("agent", "text", "ok")
    run = AgentRun.objects.get()
    assert (run.status, run.step, run.recoveries) == (RunStatus.SUCCEEDED, 2, 0)
    assert_quiet(goal, llm)


def test_messages_that_come_during_the_wait_join_the_run(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], pauses: list[float]
) -> None:
    llm.script([OVERLOADED] * 3 + [Reply(text="To both of you")])
    run = say("Hi")
    accepted = services.send_message(goal.thread, "Still there?")
    assert (accepted.run_id, rung) == (run.pk, [])
    let_it_come_due()
    sweeper.sweep()
    work_on(rung)
    asked = [m["content"].split("\n")[-1] for m in llm.requests[-1].messages if m["role"] == "user"]
    assert asked == ["Hi", "Still there?"]
    assert AgentRun.objects.count() == 1
    assert cells(goal)[-1] == ("agent", "text", "To both of you")
    assert_quiet(goal, llm)


def test_stop_works_during_the_wait(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], pauses: list[float]
) -> None:
    llm.script([OVERLOADED] * 3)
    run = say("Hi")
    stop_run(AgentRun.objects.select_related("thread").get(pk=run.pk))
    work_on(rung)
    assert AgentRun.objects.get().status == RunStatus.CANCELLED
    assert cells(goal)[-1][2].startswith("Stopped by you.")
    assert len(llm.requests) == 3
    assert_quiet(goal, llm)


def test_a_stop_that_comes_as_the_run_lets_go_is_obeyed_at_once(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_RETRY_HELD_TRIES = 0

    def stopped(request: object) -> Status:
        execute("UPDATE memory_agentrun SET status = 'cancelling'", {})
        return OVERLOADED

    llm.script([stopped])
    run = say("Hi")
    assert (run.status, run.recoveries) == (RunStatus.CANCELLED, 0)
    assert not notices(goal)
    assert_quiet(goal, llm)


def test_stop_works_while_the_lease_is_held(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    llm.script([Status(429, {"Retry-After": "9"}, {"error": {"message": "slow down"}})])
    accepted = services.send_message(goal.thread, "Hi")
    worker = in_thread(jobs.run, str(rung.pop()))
    worker.start()
    until = time.monotonic() + 8
    while ModelCall.objects.count() < 2 and time.monotonic() < until:
        time.sleep(0.02)
    stop_run(run_of(accepted))
    leases.renew()
    worker.join(timeout=5)
    assert run_of(accepted).status == RunStatus.CANCELLED
    assert len(llm.requests) == 1


def test_try_now_ends_the_wait(goal: Goal, say: Say, llm: LLMServer, rung: list[UUID], pauses: list[float]) -> None:
    llm.script([OVERLOADED] * 3 + [Reply(text="ok")])
    run = AgentRun.objects.select_related("thread").get(pk=say("Hi").pk)
    services.retry_now(run)
    services.retry_now(run)
    assert rung == [run.pk], "twice is once"
    work_on(rung)
    assert cells(goal)[-1] == ("agent", "text", "ok")
    services.retry_now(run)
    assert not rung
    assert_quiet(goal, llm)


def test_a_task_pauses_instead_and_tells_its_parent(goal: Goal, say: Say, llm: LLMServer, pauses: list[float]) -> None:
    task = ("create_task", {"title": "Shoes", "instructions": "Compare running shoes"})
    llm.script([Reply(calls=[task]), Reply(text="A helper is on it."), Reply(text="It will take longer.")], "Go")
    llm.script([OVERLOADED] * 3, "Compare running shoes")
    before = timezone.now()
    say("Go")
    child = AgentTask.objects.get()
    assert child.status == TaskStatus.PAUSED
    assert child.paused_at
    assert child.resume_at
    assert before - timedelta(seconds=5) < child.paused_at < timezone.now() + timedelta(seconds=5)
    assert timedelta(seconds=10) <= child.resume_at - child.paused_at <= timedelta(seconds=12.5)
    run = AgentRun.objects.get(thread=child.thread)
    assert (run.status, run.reason) == (RunStatus.FAILED, "overloaded")
    assert cells(goal)[-1][2] == "It will take longer."
    assert "The task is paused" in cells(goal)[-2][2]
    assert_quiet(goal, llm)


def test_what_a_broken_answer_has_used_is_paid_and_its_text_is_void(
    goal: Goal, say: Say, llm: LLMServer, pauses: list[float]
) -> None:
    goal.user.model_connections.update(kind="openai", model="gpt-5-mini")
    text = D({"role": "assistant", "content": "Half an ans"})
    llm.script([Drop([text, U(1000, 3)]), Raw([D({"content": "Whole"}), F("stop"), U(1000, 5), DONE])])
    run = say("Hi")
    assert (run.input_tokens, run.output_tokens) == (2000, 8)
    costs = [call.cost for call in ModelCall.objects.filter(run=run)]
    assert None not in costs
    assert run.cost == sum(cost for cost in costs if cost)
    assert [text for source, _, text in cells(goal) if source == "agent"] == ["Whole"]
    assert_quiet(goal, llm)


def test_a_doorbell_for_a_run_that_waits_is_ignored_by_many_workers(
    goal: Goal, say: Say, llm: LLMServer, pauses: list[float]
) -> None:
    llm.script([OVERLOADED] * 3 + [Reply(text="Once")])
    run = say("Hi")
    let_it_come_due()
    workers = [in_thread(work_in_thread, run.pk) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [text for source, _, text in cells(goal) if source == "agent"] == ["Once"]
    assert_quiet(goal, llm)
