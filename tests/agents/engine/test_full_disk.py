"""A database whose disk is full answers, and says no: runs wait for room, and say so (finding: no worker has died)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from agents import services
from agents.engine import jobs, sweeper
from agents.live.events import MessagePosted, RunChanged
from agents.models import ModelCall
from goals.models import Goal
from memory.models import AgentRun, Note, RunStatus, ThreadMessage
from memory.pool import execute
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet, cells, run_of
from tests.agents.engine.test_posting import Events, events
from tests.llm_script import Reply
from tests.llm_server import LLMServer

__all__ = ["events"]

type Say = Callable[[str], AgentRun]

FULL = """
CREATE FUNCTION disk_is_full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  RAISE 'could not extend file "base/1/2": No space left on device' USING ERRCODE = '53100'; END $$
"""


@contextmanager
def no_room_in(*tables: str) -> Iterator[None]:
    """What PostgreSQL says when it cannot make these tables longer."""
    execute(FULL, {})
    for table in tables:
        execute(f"CREATE TRIGGER full_{table} BEFORE INSERT ON {table} EXECUTE FUNCTION disk_is_full()", {})
    try:
        yield
    finally:
        execute("DROP FUNCTION disk_is_full CASCADE", {})


def come_due(rung: list[UUID]) -> None:
    """The wait is over: a worker finds the run and works on it."""
    AgentRun.objects.live().update(due_at=timezone.now() - timedelta(seconds=1), created_at="2026-01-01T00:00Z")
    assert sweeper.sweep() == 1
    while rung:
        jobs.run(str(rung.pop(0)))


def seconds_left() -> float:
    return float(execute("SELECT extract(epoch FROM due_at - clock_timestamp()) FROM memory_agentrun", {})[0][0])


def test_a_run_waits_while_the_disk_is_full_says_so_and_goes_on(
    goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, events: Events
) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted.")])
    with no_room_in("memory_note"):
        run = say("Note: new shoes")
        assert (run.status, run.lease_token, run.recoveries) == (RunStatus.RETRY_WAIT, None, 0)
        assert cells(goal)[-1][::2] == (
            "error",
            "The disk of the database is full. I go on by myself once there is room.",
        )
        seen = [event for _, event in events if isinstance(event, MessagePosted | RunChanged)][-2:]
        assert isinstance(seen[0], MessagePosted)
        assert isinstance(seen[1], RunChanged)
        assert (seen[0].metadata["attempt"], seen[1].status) == (1, RunStatus.RETRY_WAIT)
        assert 0 < seconds_left() <= 30
        for _ in range(7):  # longer than a run whose workers die is tried
            come_due(rung)
        assert ThreadMessage.objects.get(source="error").metadata["attempt"] == 8
        assert 800 < seconds_left() <= 900, "later and later"
        assert len(llm.requests) == 1, "what the model has said is kept, and not paid for again"
    come_due(rung)

    run.refresh_from_db()
    assert (run.status, run.recoveries, run.retries) == (RunStatus.SUCCEEDED, 0, 0)
    assert Note.objects.count() == 1
    assert cells(goal)[-1][2] == "Noted."
    assert_quiet(goal, llm)


def test_a_run_that_cannot_even_say_so_is_given_back(goal: Goal, say: Say, rung: list[UUID], llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE])] * 8 + [Reply(text="Noted.")])
    accepted = services.send_message(goal.thread, "Note: new shoes")
    with no_room_in("memory_threadmessage"):
        jobs.run(str(rung.pop()))
        run = run_of(accepted)
        assert (run.status, run.lease_token) == (RunStatus.QUEUED, None)
        assert 0 < seconds_left() <= 30
        for _ in range(6):
            come_due(rung)
    assert (run_of(accepted).status, run_of(accepted).recoveries) == (RunStatus.QUEUED, 0)
    come_due(rung)

    assert (run_of(accepted).status, run_of(accepted).recoveries) == (RunStatus.SUCCEEDED, 0)
    assert not ModelCall.objects.filter(status="started").exists(), "those that were open are settled"
    assert cells(goal)[-1][2] == "Noted."
    assert_quiet(goal, llm)


def test_a_run_whose_end_has_no_room_waits_for_it(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    with ExitStack() as full:

        def fill(request: object) -> Reply:
            full.enter_context(no_room_in("memory_historyentry"))
            return Reply(text="First.")

        llm.script([fill, Reply(text="Second.")])
        accepted = services.send_message(goal.thread, "Hi")
        jobs.run(str(rung.pop()))
        assert run_of(accepted).status == RunStatus.RETRY_WAIT
        assert [call.status for call in ModelCall.objects.all()] == ["started"]
    come_due(rung)
    assert run_of(accepted).status == RunStatus.SUCCEEDED
    assert [call.status for call in ModelCall.objects.order_by("created_at")] == ["failed", "done"]
    assert cells(goal)[-1][2] == "Second."
    assert_quiet(goal, llm)
