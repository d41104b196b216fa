"""What is left of a run when a worker dies, a lease is lost, or two things happen at once."""

import threading
import time
from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest
from django.db import connections as database
from pytest_django.fixtures import Settings
from structlog.testing import capture_logs

from agents import services
from agents.engine import jobs, journal, sweeper
from agents.engine.leases import leases
from agents.engine.record import Record
from agents.live.events import RunChanged
from agents.live.keys import partial_key
from agents.live.snapshot import place
from agents.live.stream import redis_client
from agents.models import AgentTask, ModelCall, TaskStatus, UserAgent
from agents.refusals import Refused
from agents.stopping import stop_run
from goals.models import Goal
from goals.services import delete_goal
from memory.ids import new_id
from memory.models import AgentRun, HistoryEntry, Note, RunStatus, Thread, ThreadMessage, Trigger
from memory.pool import execute
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet, cells, run_of, wait_until, work_in_thread
from tests.agents.live.looks import say, tell
from tests.llm_script import DONE, D, Raw, Reply, Request, Status, U
from tests.llm_server import LLMServer
from tools.builtin.notes import SearchNotes
from tools.models import AgentAction

type Say = Callable[[str], AgentRun]

SEARCH = ("search_notes", {"query": "shoes"})


class Killed(BaseException):
    """As good as kill -9 for the code that runs: nothing catches it."""


@pytest.fixture
def dies_in_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first search kills its worker."""
    alive = SearchNotes.run
    times = iter([Killed()])

    def run(self: SearchNotes, *args: object) -> object:
        for killed in times:
            raise killed
        return alive(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(SearchNotes, "run", run)


def in_thread(work: Callable[..., object], *args: object) -> threading.Thread:
    def run() -> None:
        try:
            work(*args)
        finally:
            database.close_all()

    return threading.Thread(target=run)


def expire_leases() -> None:
    AgentRun.objects.filter(lease_until__isnull=False).update(lease_until="2026-01-01T00:00Z")


def die(run_id: UUID) -> None:
    with pytest.raises(Killed):
        jobs.run(str(run_id))
    expire_leases()


@pytest.mark.usefixtures("dies_in_tool")
def test_a_run_whose_worker_died_in_a_reading_tool_reads_again_in_the_same_step(
    goal: Goal, rung: list[UUID], llm: LLMServer
) -> None:
    llm.script([Reply(calls=[NOTE, SEARCH]), Reply(calls=[SEARCH]), Reply(text="Found them.")])
    services.send_message(goal.thread, "Where are my shoes?")
    run_id = rung.pop()
    die(run_id)

    with capture_logs() as logs:
        jobs.run(str(run_id))

    run = AgentRun.objects.get(pk=run_id)
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 1)
    assert [line["lost"] for line in logs if line["event"] == "run taken up again"] == [1]
    assert [action.status for action in AgentAction.objects.filter(run=run)] == ["done", "done", "done"]
    assert Note.objects.count() == 1, "what was done is not done again"
    answers = [message["content"] for message in llm.requests[1].messages if message["role"] == "tool"]
    assert "Created the note" in answers[0]
    assert "**Shoes**" in answers[1]
    assert [action.step for action in AgentAction.objects.filter(run=run)] == [0, 0, 1]
    assert cells(goal)[-1][2] == "Found them."
    assert_quiet(goal, llm)


@pytest.mark.usefixtures("dies_in_tool")
def test_his_01_c_a_run_without_a_message_passes_after_the_crash_too(
    goal: Goal, rung: list[UUID], llm: LLMServer
) -> None:
    llm.script([Reply(calls=[NOTE, SEARCH]), Reply(text="Found them."), Reply(text="All is well.")])
    services.send_message(goal.thread, "Where are my shoes?")
    run_id = rung.pop()
    die(run_id)
    jobs.run(str(run_id))

    services.wake(goal.thread, Trigger.RETRY)
    jobs.run(str(rung.pop()))

    answers = [message["content"] for message in llm.requests[-1].messages if message["role"] == "tool"]
    assert "Created the note" in answers[0]
    assert "Shoes" in answers[1], "a pure call runs again"
    assert cells(goal)[-1][2] == "All is well."
    assert_quiet(goal, llm)


@pytest.mark.usefixtures("dies_in_tool")
def test_a_stop_that_comes_while_the_worker_is_dead_is_obeyed_by_the_next(
    goal: Goal, rung: list[UUID], llm: LLMServer
) -> None:
    llm.script([Reply(calls=[SEARCH])])
    services.send_message(goal.thread, "Where are my shoes?")
    run_id = rung.pop()
    die(run_id)
    stop_run(AgentRun.objects.select_related("thread").get(pk=run_id))
    jobs.run(str(run_id))
    assert AgentRun.objects.get(pk=run_id).status == RunStatus.CANCELLED
    assert_quiet(goal, llm)


def test_a_run_that_kills_every_worker_is_given_up_visibly(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    services.send_message(goal.thread, "Hi")
    run_id = rung.pop()
    AgentRun.objects.update(recoveries=6)
    jobs.run(str(run_id))
    run = AgentRun.objects.get(pk=run_id)
    assert (run.status, run.reason) == (RunStatus.FAILED, "crashed")
    assert "several times" in cells(goal)[-1][2]
    assert_quiet(goal, llm)


def test_what_cannot_be_assembled_ends_where_the_user_sees_it(goal: Goal, say: Say, llm: LLMServer) -> None:
    goal.user.model_connections.update(sealed_key="from another server")
    run = say("Hi")
    assert (run.status, run.reason) == (RunStatus.FAILED, "bad_key")
    assert cells(goal)[-1][0] == "error"
    assert "Give it again" in cells(goal)[-1][2]
    assert_quiet(goal, llm)


def test_an_address_that_is_none_ends_where_the_user_sees_it(goal: Goal, say: Say, llm: LLMServer) -> None:
    goal.user.model_connections.update(base_url="http://\x01")
    assert say("Hi").status == RunStatus.FAILED
    assert_quiet(goal, llm)


def test_a_database_that_goes_away_leaves_the_run_for_the_next_worker(
    goal: Goal, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: object) -> None:
        raise psycopg.OperationalError("the connection is lost")

    llm.script([Reply(calls=[NOTE]), Reply(calls=[NOTE]), Reply(text="Noted.")])
    services.send_message(goal.thread, "Note: new shoes")
    run_id = rung.pop()
    with monkeypatch.context() as broken:
        broken.setattr(journal, "reply", away)
        jobs.run(str(run_id))
    assert AgentRun.objects.get(pk=run_id).status == RunStatus.RUNNING
    expire_leases()
    jobs.run(str(run_id))
    assert AgentRun.objects.get(pk=run_id).status == RunStatus.SUCCEEDED
    assert_quiet(goal, llm)


def test_a_lost_lease_is_not_written_down_as_the_users_stop(
    goal: Goal, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(self: Record, *args: object) -> None:
        self.held.lose()
        self.held.cancel.check()

    llm.script([Reply(calls=[NOTE])])
    services.send_message(goal.thread, "Note: new shoes")
    run_id = rung.pop()
    with monkeypatch.context() as losing:
        losing.setattr(Record, "may_start", lose)
        jobs.run(str(run_id))
    assert AgentRun.objects.get(pk=run_id).status == RunStatus.RUNNING
    assert not HistoryEntry.objects.filter(role="tool").exists()


def test_nothing_is_executed_after_the_local_deadline_of_a_lease(
    goal: Goal, rung: list[UUID], llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overdue(request: object) -> Reply:
        for held in leases.held.values():
            held.until = time.monotonic() - 1
        return Reply(calls=[NOTE])

    llm.script([overdue])
    services.send_message(goal.thread, "Note: new shoes")
    jobs.run(str(rung.pop()))
    assert not Note.objects.exists()


def test_a_message_that_races_a_stop_is_answered(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    for _ in range(12):
        run = run_of(services.send_message(goal.thread, "Hi"))
        racers = [in_thread(services.send_message, goal.thread, "ping"), in_thread(stop_run, run)]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        while rung:
            jobs.run(str(rung.pop(0)))
        assert not ThreadMessage.objects.filter(processed=False).exists()
    assert_quiet(goal, llm)


def test_claims_and_writes_of_a_zombie_do_not_deadlock(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE])] * 40 + [Reply(text="Done")] * 40)
    services.send_message(goal.thread, "Note: new shoes")
    run_id = rung.pop()
    workers = [threading.Thread(target=work_in_thread, args=(run_id,)) for _ in range(4)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        expire_leases()
        work_in_thread(run_id)
    expire_leases()
    jobs.run(str(run_id))
    assert not AgentRun.objects.live().exists()
    seqs = list(HistoryEntry.objects.values_list("seq", flat=True))
    assert seqs == sorted(set(seqs))


def test_deleting_a_goal_leaves_nothing_of_its_tasks(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    task = ("create_task", {"title": "Shoes", "instructions": "Compare running shoes"})
    llm.script([Reply(calls=[task]), Reply(text="A helper is on it.")])
    services.send_message(goal.thread, "Go")
    jobs.run(str(rung.pop(0)))
    assert AgentTask.objects.count() == 1
    deleting = in_thread(delete_goal, goal)
    deleting.start()
    while deleting.is_alive():
        while rung:
            work_in_thread(rung.pop(0))
    assert not Thread.objects.exclude(kind=UserAgent.kind()).exists()
    assert not AgentRun.objects.exists()
    assert not AgentTask.objects.exists()


def test_stopping_a_queued_task_settles_it_and_tells_its_parent(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    task = ("create_task", {"title": "Shoes", "instructions": "Compare running shoes"})
    llm.script([Reply(calls=[task]), Reply(text="A helper is on it."), Reply(text="It was stopped.")])
    services.send_message(goal.thread, "Go")
    jobs.run(str(rung.pop(0)))
    stop_run(AgentRun.objects.live().select_related("thread").get())
    while rung:
        jobs.run(str(rung.pop(0)))
    assert AgentTask.objects.get().status == TaskStatus.CANCELLED
    assert cells(goal)[-1][2] == "It was stopped."
    assert_quiet(goal, llm)


def test_a_backlog_is_rung_for_once_and_not_by_every_sweep(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    services.send_message(goal.thread, "Hi")
    AgentRun.objects.update(created_at="2026-01-01T00:00Z")
    rung.clear()
    assert (sweeper.sweep(), sweeper.sweep()) == (1, 0)


def test_a_locked_run_is_neither_waited_for_nor_given_up_by_a_renewal(
    goal: Goal, rung: list[UUID], llm: LLMServer
) -> None:
    def renew_while_locked(request: object) -> Reply:
        (held,) = leases.held.values()
        with psycopg.connect(**database["default"].get_connection_params()) as other:
            other.execute("SELECT 1 FROM memory_agentrun FOR UPDATE")
            leases.renew()
        assert not held.lost
        return Reply(text="Still here")

    llm.script([renew_while_locked])
    services.send_message(goal.thread, "Hi")
    jobs.run(str(rung.pop()))
    assert cells(goal)[-1][2] == "Still here"
    assert_quiet(goal, llm)


def test_a_cut_off_answer_says_so(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="Once upon a", finish="length")])
    assert say("Tell me a story").status == RunStatus.SUCCEEDED
    assert [text for _, _, text in cells(goal)][1:] == [
        "Once upon a",
        "The answer is cut off: the model reached the longest answer it may give.",
    ]
    assert_quiet(goal, llm)


def test_an_answer_longer_than_this_server_takes_is_cut_off_and_says_so(
    goal: Goal, say: Say, llm: LLMServer, settings: Settings
) -> None:
    settings.WAYMARK_ANSWER_LENGTH = 20
    llm.script([Reply(text="Once upon a time there was a server")])
    assert say("Tell me a story").status == RunStatus.SUCCEEDED
    told = [text for _, _, text in cells(goal)][1:]
    assert told[0] == "Once upon a time the"
    assert "cut off" in told[1]
    assert_quiet(goal, llm)


def test_a_model_inside_the_network_serves_only_staff_whenever_it_was_entered(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    type(goal.user).objects.update(is_staff=False)
    assert say("Hi").status == RunStatus.FAILED
    assert "only staff" in cells(goal)[-1][2]
    assert llm.requests == []


def test_only_the_last_message_can_be_tried_again(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Status(401)])
    say("Hi")
    error = ThreadMessage.objects.get(source="error")
    say("ping")
    with pytest.raises(Refused):
        services.retry(error)


def test_a_failed_try_is_counted_once_when_the_run_is_stopped_before_the_next(
    goal: Goal, rung: list[UUID], llm: LLMServer
) -> None:
    chunk = D({"role": "assistant", "content": "Let me "})
    llm.script([Raw([chunk, U(1000, 3), b'data: {"error":{"code":502,"message":"overloaded"}}\n\n', DONE])])
    accepted = services.send_message(goal.thread, "Hi")
    worker = threading.Thread(target=work_in_thread, args=(rung.pop(),))
    worker.start()
    wait_until(lambda: ModelCall.objects.count() == 2)
    stop_run(run_of(accepted))
    leases.renew()
    worker.join(timeout=30)
    run = run_of(accepted)
    assert (run.status, run.input_tokens, run.output_tokens) == (RunStatus.CANCELLED, 1000, 3)
    assert [call.status for call in ModelCall.objects.filter(run=run)] == ["failed", "cancelled"]


def test_the_fence_is_in_every_write(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    """A worker whose token is gone changes nothing, whatever it tries."""

    def usurp(request: object) -> Reply:
        execute("UPDATE memory_agentrun SET lease_token = gen_random_uuid(), fence = fence + 1", {})
        return Reply(calls=[NOTE])

    llm.script([usurp])
    services.send_message(goal.thread, "Hi")
    jobs.run(str(rung.pop()))
    assert not Note.objects.exists()
    assert not AgentAction.objects.exists()
    assert [role for _, role, _ in cells(goal)] == ["text"]
    assert AgentRun.objects.get().status == RunStatus.RUNNING


def test_what_a_worker_said_before_it_lost_its_run_is_not_told_for_its_next_worker(
    goal: Goal, rung: list[UUID], llm: LLMServer
) -> None:
    def usurp(request: object) -> Reply:
        execute("UPDATE memory_agentrun SET lease_token = gen_random_uuid(), fence = fence + 1", {})
        return Reply(text="The words of the first worker.")

    llm.script([usurp])
    services.send_message(goal.thread, "Hi")
    jobs.run(str(rung.pop()))
    redis_client().delete(partial_key(goal.thread_id))
    say(goal.thread_id, "The second one's.")
    redis_client().script_flush()
    tell(new_id(), RunChanged(run=new_id(), status="running", iterations=1, cost=None))
    partial = place(goal.thread_id).partial
    assert partial is not None
    assert partial.text == "The second one's."


def test_an_agent_cannot_send_off_tasks_for_ever(goal: Goal, say: Say, llm: LLMServer, settings: Settings) -> None:
    """A model that answers each report with another task ends with the tasks that one message may lead to."""
    settings.WAYMARK_MAX_TASKS_PER_MESSAGE = 3

    def another(request: Request) -> Reply:
        if not any(tool["function"]["name"] == "create_task" for tool in request.body["tools"]):
            return Reply(text="Report")
        if request.results:
            return Reply(text="One more is on its way.")
        return Reply(calls=[("create_task", {"title": "Again", "instructions": "And again"})])

    llm.script([another] * 60)
    say("Go")
    assert AgentTask.objects.count() == 3
    assert_quiet(goal, llm)
