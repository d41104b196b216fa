"""Who waits for a lock must see what its holder has done, and who loses something must lose only that."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connections, transaction
from django.utils import timezone

from agents.engine import journal
from agents.engine.journal import Lease, Progress, fenced
from agents.engine.kept import keep
from agents.engine.leases import Held, Leases
from agents.models import Prompt
from goals.models import Goal
from memory import pool
from memory.ids import new_id
from memory.models import AgentRun, RunStatus, Thread
from memory.pool import orm_connection
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.locks import waiting
from tests.processes import wait_until
from tests.world import World
from tools.cancel import CancelToken

type Say = Callable[[str], AgentRun]

CALL_EXISTS = "EXISTS (SELECT FROM agents_modelcall WHERE id = %(call)s)"


@pytest.fixture
def other_session() -> Iterator[psycopg.Connection[Any]]:
    """A session outside of all pools."""
    parameters = connections["default"].get_connection_params()
    kept = {key: value for key, value in parameters.items() if key not in pool.OF_DJANGO}
    with psycopg.connect(**kept) as connection:
        yield connection


def held_again(run: AgentRun) -> Lease:
    """The run as a worker holds it."""
    token, until = new_id(), timezone.now() + timedelta(minutes=1)
    AgentRun.objects.filter(pk=run.pk).update(
        status=RunStatus.RUNNING, lease_token=token, lease_until=until, due_at=None
    )
    return Lease(run.pk, token, run.thread_id, run.thread.user_id, 1, Progress(run.step, new_id()))


def test_con_05_a_message_that_comes_in_the_moment_in_which_its_run_begins_to_wait_wakes_it(
    goal: Goal, say: Say, llm: LLMServer, world: World, rung: list[UUID]
) -> None:
    llm.script([Reply(calls=[("send_email", {"text": "hello"})])])
    run = say("Write to Ann")
    assert run.status == RunStatus.WAITING_APPROVAL
    lease = held_again(run)
    with ThreadPoolExecutor(1) as elsewhere:
        with transaction.atomic():
            assert journal.wait_for_approval(lease, orm_connection()).waits
            accepted = elsewhere.submit(journal.accept, goal.thread.pk, new_id(), new_id(), "No, wait")
            wait_until(lambda: waiting() > 0, 20)
        row = accepted.result(timeout=20)
    assert row is not None
    assert row.woken
    run.refresh_from_db()
    assert (run.status, run.due_at) == (RunStatus.QUEUED, None)


def test_a_lost_commit_that_lands_while_it_is_looked_up_counts(
    goal: Goal, say: Say, llm: LLMServer, other_session: psycopg.Connection[Any]
) -> None:
    llm.script([Reply(text="x")])
    run = say("hello")
    lease, call = held_again(run), new_id()
    other_session.execute("UPDATE memory_agentrun SET step = step + 1 WHERE id = %s", [run.pk])
    other_session.execute(
        "INSERT INTO agents_modelcall (id, run_id, step, attempt, provider, model, status)"
        " VALUES (%s, %s, 5, 1, '', '', 'started')",
        [call, run.pk],
    )
    with ThreadPoolExecutor(1) as elsewhere:
        landed = elsewhere.submit(fenced.landed, lease, CALL_EXISTS, {"call": call})
        wait_until(lambda: waiting() > 0, 20)
        other_session.commit()
        assert landed.result(timeout=20)


def test_of_a_thread_that_is_being_deleted_no_prompt_is_kept(goal: Goal) -> None:
    with ThreadPoolExecutor(1) as elsewhere:
        with transaction.atomic():
            list(Thread.objects.select_for_update().filter(pk=goal.thread_id))
            kept = elsewhere.submit(keep, goal.thread_id, "core")
            wait_until(lambda: waiting() > 0, 20)
            Thread.objects.filter(pk=goal.thread_id).delete()
        assert kept.result(timeout=20)
    assert not Prompt.objects.exists()


def test_after_a_restart_of_the_database_one_statement_fails_and_not_one_for_each_connection(
    goal: Goal, other_session: psycopg.Connection[Any]
) -> None:
    with ThreadPoolExecutor(8) as many:
        list(many.map(lambda _: pool.execute("SELECT pg_sleep(0.5)", {}), range(8)))
    other_session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND query = 'SELECT pg_sleep(0.5)'"
    )
    failed = 0
    for _ in range(20):
        try:
            pool.execute("SELECT 1", {})
        except psycopg.OperationalError:
            failed += 1
    assert failed == 1


def test_a_run_that_was_lost_and_claimed_here_again_is_not_forgotten_when_its_old_thread_ends() -> None:
    leases, run_id = Leases(), new_id()

    def held() -> AbstractContextManager[Held]:
        lease = Lease(run_id, new_id(), new_id(), 1, 1, Progress(0, new_id()))
        return leases.hold(lease, CancelToken(), time.monotonic())

    with ExitStack() as old:
        old.enter_context(held())
        with held() as new:
            old.close()
            assert leases.held == {run_id: new}
    assert not leases.held
