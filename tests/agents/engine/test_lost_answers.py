"""A commit whose answer is lost: what was committed is announced as if nothing had happened, and what was not is tried
again."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection, transaction
from django.test import Client
from pytest_django.fixtures import Settings

from agents import services
from agents.engine import jobs, journal
from agents.live.events import Failed, MessagePosted, RunChanged
from goals.models import Goal
from memory import pool
from memory.models import AgentRun, Note, RunStatus, Source, ThreadMessage
from memory.pool import orm
from tests.agents.engine.test_calls import post, statuses
from tests.agents.engine.test_delegation import last, said, sends_off, task, work
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet
from tests.agents.engine.test_posting import Events, events
from tests.factories import bearer
from tests.llm_script import Reply, Request, Status
from tests.llm_server import LLMServer
from tests.world import World
from tools.builtin.notes import CreateNote

__all__ = ["events"]

type Say = Callable[[str], AgentRun]

TOOK = ("search_notes", {"query": "shoes"})
end, claiming, accepting = (import_module(f"agents.engine.journal.{name}") for name in ("end", "claim", "accept"))

both_ways = pytest.mark.parametrize("committed", [True, False], ids=["committed", "not committed"])


@contextmanager
def losing(*statements: str, committed: bool) -> Iterator[list[str]]:
    """The connection is lost at the first execution of each statement; yields what is still to be lost."""
    real, lost = pool.execute, list(statements)

    def lossy(sql: str, parameters: dict[str, object]) -> list[pool.Row]:
        if sql not in lost:
            return real(sql, parameters)
        lost.remove(sql)
        if committed:
            real(sql, parameters)
        raise psycopg.OperationalError("the connection is lost")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pool, "execute", lossy)
        yield lost
    assert not lost


@contextmanager
def losing_a_transaction(of: Callable[[], bool], *, committed: bool) -> Iterator[None]:
    """The connection is lost at the end of the first transaction of which `of` is true."""
    real, lost = transaction.Atomic.__exit__, [1]

    def lossy(self: transaction.Atomic, *error: object) -> None:
        loses = bool(lost) and not error[0] and of()
        if loses:
            lost.clear()
            if not committed:
                connection.connection.close()
        real(self, *error)  # type: ignore[arg-type]
        if loses:
            raise psycopg.OperationalError("the connection is lost")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(transaction.Atomic, "__exit__", lossy)
        yield
    assert not lost


def told(events: Events, goal: Goal) -> list[tuple[str, str]]:
    """What those who look on at a goal have seen of messages and of its run's end."""
    seen = [event for thread, event in events if thread == goal.thread.pk]
    return [
        (event.source, event.content) if isinstance(event, MessagePosted) else ("run", event.status)
        for event in seen
        if isinstance(event, MessagePosted | RunChanged)
    ]


@both_ways
def test_the_end_of_a_run_is_announced(goal: Goal, say: Say, llm: LLMServer, events: Events, committed: bool) -> None:
    llm.script([Reply(text="The answer")])
    with losing(end.FINAL, committed=committed):
        run = say("hello")
    assert (run.status, run.recoveries) == (RunStatus.SUCCEEDED, 0)
    assert told(events, goal)[-2:] == [(Source.AGENT, "The answer"), ("run", RunStatus.SUCCEEDED)]
    assert said(goal) == ["hello", "The answer"]
    assert_quiet(goal, llm)


@both_ways
def test_the_run_that_follows_is_rung_for(goal: Goal, rung: list[UUID], llm: LLMServer, committed: bool) -> None:
    def more(request: Request) -> Reply:
        services.send_message(goal.thread, "One more thing")
        return Reply(text="The answer")

    llm.script([more, Reply(text="That too")])
    services.send_message(goal.thread, "hello")
    with losing(end.FINAL, committed=committed):
        work(rung)
    assert said(goal) == ["hello", "The answer", "One more thing", "That too"]


@both_ways
def test_a_claim_goes_on(goal: Goal, say: Say, llm: LLMServer, committed: bool) -> None:
    llm.script([Reply(text="The answer")])
    with losing(claiming.CLAIM, committed=committed):
        run = say("hello")
    assert (run.status, run.recoveries, run.fence) == (RunStatus.SUCCEEDED, 0, 1)
    assert_quiet(goal, llm)


@both_ways
def test_messages_that_were_taken_are_answered(
    goal: Goal, say: Say, llm: LLMServer, events: Events, committed: bool
) -> None:
    def more(request: Request) -> Reply:
        services.send_message(goal.thread, "One more thing")
        return Reply(calls=[TOOK])

    llm.script([more, Reply(text="Both")])
    with losing(claiming.TAKE, committed=committed):
        run = say("hello")
    assert run.status == RunStatus.SUCCEEDED
    assert "One more thing" in str(llm.requests[-1].messages[-1])
    assert told(events, goal).count((Source.USER, "One more thing")) == 2, "when it came, and in its new place"
    assert_quiet(goal, llm)


@both_ways
def test_a_message_is_accepted_once(goal: Goal, say: Say, llm: LLMServer, events: Events, committed: bool) -> None:
    llm.script([Reply(text="The answer")])
    with losing(accepting.ACCEPT, committed=committed):
        say("hello")
    assert said(goal) == ["hello", "The answer"]
    assert told(events, goal)[:2] == [(Source.USER, "hello"), ("run", RunStatus.QUEUED)]


def test_a_message_after_a_restart_of_the_database_is_accepted(goal: Goal, rung: list[UUID]) -> None:
    """However many connections lay in the pools: looking at one after the other would take longer than they wait."""

    def send(text: str) -> int:
        address = f"/api/v1/goals/{goal.pk}/messages"
        return Client().post(address, {"content": text}, "application/json", headers=bearer(goal.user)).status_code

    assert send("before") == 202
    _fill_the_pool(8)
    others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    connection.close()
    with psycopg.connect(**_server()) as other:
        other.execute(f"SELECT pg_terminate_backend(pid, 5000) {others}")
    assert send("after") == 202
    assert list(ThreadMessage.objects.values_list("content", flat=True)) == ["before", "after"]


def _fill_the_pool(number: int) -> None:
    """Have so many of the ORM's connections lie idle."""
    together = threading.Barrier(number)

    def use(_: int) -> None:
        with orm():
            connection.ensure_connection()
            together.wait(20)

    with ThreadPoolExecutor(number) as many:
        list(many.map(use, range(number)))


def _server() -> dict[str, Any]:
    parameters = connection.get_connection_params()
    return {name: parameters[name] for name in ("host", "port", "user", "password", "dbname") if parameters.get(name)}


@both_ways
def test_a_wait_for_the_model_is_announced(
    goal: Goal, say: Say, llm: LLMServer, events: Events, settings: Settings, committed: bool
) -> None:
    settings.WAYMARK_RETRY_HELD_TRIES = 0
    llm.script([Status(503)])
    with losing(end.LATER, committed=committed):
        run = say("hello")
    assert (run.status, run.retries) == (RunStatus.RETRY_WAIT, 1)
    assert told(events, goal)[-1] == ("run", RunStatus.RETRY_WAIT)
    (cell,) = [event for _, event in events if isinstance(event, MessagePosted) and event.source == Source.ERROR]
    assert cell.metadata["next_at"]
    assert not [event for _, event in events if isinstance(event, Failed)]


@both_ways
def test_a_wait_for_approval_is_announced(
    goal: Goal, say: Say, llm: LLMServer, world: World, events: Events, committed: bool
) -> None:
    llm.script([Reply(calls=[("send_email", {"text": "hello"})])])

    def waits() -> bool:
        return AgentRun.objects.filter(status=RunStatus.WAITING_APPROVAL).exists()

    with losing_a_transaction(waits, committed=committed):
        run = say("Write to Ann")
    assert run.status == RunStatus.WAITING_APPROVAL
    assert told(events, goal)[-1] == ("run", RunStatus.WAITING_APPROVAL)


@both_ways
def test_a_report_reaches_its_parent(
    goal: Goal, llm: LLMServer, rung: list[UUID], events: Events, committed: bool
) -> None:
    sends_off(goal, llm, rung, task("shoes"))
    llm.script([Reply(text="Red ones.")], "Look up shoes")
    llm.script([Reply(text="Noted.")], last("<task_report>"))

    def reports() -> bool:
        return ThreadMessage.objects.filter(thread=goal.thread, metadata__has_key="task").exists()

    with losing_a_transaction(reports, committed=committed):
        work(rung)
    assert said(goal) == ["Go", "They are on it.", "Red ones.", "Noted."]
    assert (Source.AGENT, "Red ones.") in told(events, goal)
    assert not AgentRun.objects.live().exists()


def test_a_run_that_somebody_else_has_ended_is_not_announced_by_us(
    goal: Goal, rung: list[UUID], llm: LLMServer, events: Events
) -> None:
    """Its lease was lost before the commit."""

    def taken_away(request: Request) -> Reply:
        pool.execute("UPDATE memory_agentrun SET lease_token = id", {})
        return Reply(text="The answer")

    llm.script([taken_away])
    services.send_message(goal.thread, "hello")
    with losing(end.FINAL, committed=True):
        jobs.run(str(rung.pop(0)))
    assert ("run", RunStatus.SUCCEEDED) not in told(events, goal)


@both_ways
def test_a_durable_point_whose_commit_is_lost_is_looked_up_before_it_is_tried_again(
    goal: Goal, say: Say, llm: LLMServer, world: World, committed: bool
) -> None:
    llm.script([Reply(calls=[post("hello")]), Reply(text="Sent.")])
    with losing(journal.steps.REPLY, journal.steps.OUTCOME, committed=committed):
        run = say("Go")
    assert (run.status, run.recoveries, run.step) == (RunStatus.SUCCEEDED, 0, 2)
    assert world.texts("post") == ["hello"]
    assert statuses() == ["done"]
    assert_quiet(goal, llm)


def test_a_worker_that_stood_still_in_a_transaction_goes_on(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was frozen, or its machine slept, for longer than PostgreSQL leaves a transaction alone."""
    sleeps, real = iter([0.5]), CreateNote.run

    def run(self: CreateNote, *args: Any) -> Any:
        for seconds in sleeps:
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 100")
            time.sleep(seconds)
        return real(self, *args)

    monkeypatch.setattr(CreateNote, "run", run)
    llm.script([Reply(calls=[NOTE]), Reply(text="Done.")])
    assert say("Make a note").status == RunStatus.SUCCEEDED
    assert Note.objects.count() == 1
    assert_quiet(goal, llm)
