"""How the runs of many users share the workers: caps for each, and the fewest first."""

import threading
from uuid import UUID

import pytest
from django.test import Client
from pytest_django.fixtures import Settings
from rq.job import Job

from agents import services
from agents.engine import jobs, journal
from agents.engine.errands import Errands
from agents.live.stream import redis_client
from agents.stopping import stop_run
from goals.models import Goal
from memory.context import Context
from memory.ids import new_id
from memory.models import AgentRun, RunStatus, Thread, ThreadMessage
from tests.agents.engine.test_archiving import asks_for_summary, summary_requests, talk
from tests.factories import GoalFactory, bearer, think_with
from tests.llm_script import Hang, Reply
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker

pytestmark = pytest.mark.programs


@pytest.fixture
def goals(transactional_db: None, llm: LLMServer) -> list[Goal]:
    """Five goals of one user."""
    redis_client().flushdb()
    first: Goal = GoalFactory()
    think_with(first.user, llm.url)
    return [first, *(GoalFactory(user=first.user) for _ in range(4))]


def claim(run_id: UUID) -> journal.Lease | None:
    return journal.claim(run_id, journal.NextCall("compatible", "test-model"), Context(""))


def take(*runs: UUID) -> None:
    for run in runs:
        assert claim(run), "there is a slot"


def send(goal: Goal) -> UUID:
    run_id = services.send_message(goal.thread, "Hi").run_id
    assert run_id is not None
    return run_id


def statuses() -> dict[str, int]:
    found = list(AgentRun.objects.values_list("status", flat=True))
    return {status: found.count(status) for status in found}


def test_two_runs_of_a_user_work_at_once_and_each_end_lets_the_next_in(goals: list[Goal], llm: LLMServer) -> None:
    hold = threading.Event()
    llm.script([Reply(text="Done", hold=hold)] * 5)
    with worker(WAYMARK_SWEEP_SECONDS="60"), worker(WAYMARK_SWEEP_SECONDS="60"):
        for goal in goals:
            send(goal)
        wait_until(lambda: statuses().get("running") == 2)
        wait_until(lambda: not redis_client().llen("rq:queue:default"))
        assert statuses() == {"running": 2, "queued": 3}
        hold.set()
        wait_until(lambda: statuses() == {"succeeded": 5}, 20)


def test_the_cap_of_one_user_holds_nobody_else_back(goals: list[Goal], rung: list[UUID], llm: LLMServer) -> None:
    runs = [send(goal) for goal in goals]
    assert [claim(run) is not None for run in runs] == [True, True, False, False, False]
    assert claim(send(GoalFactory.create())) is not None


def test_simultaneous_claims_never_exceed_the_cap(goals: list[Goal], rung: list[UUID]) -> None:
    for _ in range(10):
        runs = [send(goal) for goal in goals]
        start = threading.Barrier(len(runs))

        def race(run: UUID, start: threading.Barrier = start) -> None:
            start.wait()
            claim(run)

        threads = [threading.Thread(target=race, args=[run]) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert statuses() == {"running": 2, "queued": 3}
        AgentRun.objects.all().delete()
        Thread.objects.update(live_run=None)


@pytest.mark.parametrize("status", [RunStatus.RETRY_WAIT, RunStatus.WAITING_APPROVAL])
def test_who_waits_holds_no_slot(goals: list[Goal], rung: list[UUID], status: str) -> None:
    runs = [send(goal) for goal in goals]
    AgentRun.objects.filter(pk__in=runs[:2]).update(status=status)
    take(*runs[2:4])
    assert claim(runs[4]) is None


def test_a_stop_needs_no_slot(goals: list[Goal], rung: list[UUID]) -> None:
    runs = [send(goal) for goal in goals]
    take(*runs[:2])
    stop_run(AgentRun.objects.get(pk=runs[2]))
    jobs.run(str(runs[2]))
    assert AgentRun.objects.get(pk=runs[2]).status == RunStatus.CANCELLED


def test_the_slot_of_a_dead_worker_is_free_when_its_lease_is_over(goals: list[Goal], rung: list[UUID]) -> None:
    runs = [send(goal) for goal in goals]
    take(*runs[:2])
    AgentRun.objects.filter(pk=runs[0]).update(lease_until="2026-01-01T00:00Z")
    assert claim(runs[2])


def test_the_sweep_rings_for_those_with_the_fewest_at_work_first(goals: list[Goal], rung: list[UUID]) -> None:
    busy, idle = [send(goal) for goal in goals[:2]], send(GoalFactory.create())
    full = [send(GoalFactory.create(user=goal.user)) for goal in [GoalFactory.create()] for _ in range(3)]
    take(busy[0], *full[:2])
    AgentRun.objects.update(created_at="2026-01-01T00:00Z")
    AgentRun.objects.filter(pk=idle).update(created_at="2026-01-02T00:00Z")
    assert journal.lost_runs(0) == [idle, busy[1]], "who has no slot is not rung for"


def test_at_most_twenty_wait_and_the_next_is_refused(
    goals: list[Goal], rung: list[UUID], settings: Settings, client: Client
) -> None:
    settings.WAYMARK_MAX_QUEUED_PER_USER = 4
    sent = [send(goal) for goal in goals[:4]]
    last = goals[4]
    client.force_login(last.user)

    answer = client.post(
        f"/api/v1/goals/{last.pk}/messages", {"content": "And this"}, "application/json", headers=bearer(last.user)
    )
    assert answer.status_code == 429
    assert answer.json()["error"]["code"] == "too_many_queued"
    page = client.post(f"/threads/{last.thread.pk}/messages", {"content": "Keep this text"})
    assert page.status_code == 422
    assert "Keep this text" in page.content.decode()
    assert not ThreadMessage.objects.filter(thread=last.thread).exists()

    services.send_message(goals[0].thread, "Where a run waits already, more can be said")
    assert claim(sent[0])
    again = new_id()
    first = services.send_message(last.thread, "Now there is room", again)
    assert services.send_message(last.thread, "Now there is room", again).message.pk == first.message.pk


def test_summaries_of_one_user_take_no_thread_from_the_runs_of_others(goals: list[Goal], llm: LLMServer) -> None:
    """More sessions than the worker has threads, and a model that never sums up."""
    llm.always(Hang(60), asks_for_summary)
    llm.script([Reply(text="Here I am.")])
    other: Goal = GoalFactory()
    think_with(other.user, llm.url)
    for goal in [*goals, *(GoalFactory.create(user=goals[0].user) for _ in range(20))]:
        talk(goal, 1)
        services.archive_now(goal.thread)
        services.archive_now(goal.thread)
    with worker():
        wait_until(lambda: len(summary_requests(llm)) > 0)
        wait_until(lambda: not redis_client().llen("rq:queue:default"))
        run_id = send(other)
        wait_until(lambda: AgentRun.objects.get(pk=run_id).status == RunStatus.SUCCEEDED, 20)
        assert len(summary_requests(llm)) == 1, "one at a time for each user"


def test_an_errand_waits_for_those_of_its_user_alone_and_is_done_once() -> None:
    hold, done, begun = threading.Event(), [], threading.Event()

    def perform(job: Job) -> None:
        begun.set()
        hold.wait(10)
        done.append(job.args[0])

    def errand(user: int, name: str) -> Job:
        return Job.create("agents.engine.jobs.archive", (name,), connection=redis_client(), meta={"user": user})

    errands = Errands(1, perform)
    for user, name in [(1, "a"), (1, "a"), (1, "b"), (1, "b"), (1, "c"), (2, "x"), (2, "y")]:
        errands.put(errand(user, name))
        assert begun.wait(10)
    hold.set()
    wait_until(lambda: len(done) == 5)
    assert done == ["a", "x", "b", "y", "c"]
    hold.clear()
    begun.clear()
    errands.put(errand(3, "last"))
    assert begun.wait(10)
    errands.put(errand(3, "never begun"))
    assert [job.args[0] for job in errands.close()] == ["never begun"]
    hold.set()
