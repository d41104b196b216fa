"""What waits for its user's word with the assistant keeps no feed from being written (mission A13)."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from agents import services
from agents.engine import crashpoints, sweeper
from agents.services import assistant_of
from agents.stopping import stop_run
from goals import firing
from goals.feed import Feed
from goals.models import Goal, Schedule, ScheduleKind
from memory.models import AgentRun, RunStatus, Thread, ThreadMessage
from tests.agents.engine.test_approvals import APPROVED, EMAIL, REJECTED, decide
from tests.agents.engine.test_calls import die
from tests.agents.engine.test_feed import WRITTEN, did_something, work
from tests.agents.engine.test_orchestrator import assert_quiet
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer
from tests.world import Killed, World
from tools.models import AgentAction, Approval, ApprovalState

type Say = Callable[[str], AgentRun]


@pytest.fixture
def thread(goal: Goal, say: Say, rung: list[UUID], llm: LLMServer, world: World) -> Thread:
    """Of an assistant that waits for its user's word, on a day on which there is something to tell."""
    Schedule.objects.exclude(kind=ScheduleKind.FEED).delete()
    did_something(say, llm)
    llm.script([Reply(calls=[EMAIL])])
    thread: Thread = assistant_of(goal.user).thread
    services.send_message(thread, "Write to them")
    work(rung)
    assert AgentRun.objects.get(thread=thread).status == RunStatus.WAITING_APPROVAL
    return thread


@pytest.fixture(autouse=True)
def days(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Let so many days pass."""
    now = [timezone.now()]

    def passed(days: int) -> None:
        now[0] += timedelta(days=days)
        monkeypatch.setattr(timezone, "now", lambda: now[0])

    yield passed
    crashpoints.arm("")


def mind(request: Request) -> Reply:
    if request.results and "write_feed" in str(request.messages[-2]):
        return Reply(text="")
    if "<feed>" in request.last_user_text:
        return Reply(calls=[("write_feed", WRITTEN)])
    return Reply(text="As you say.")


def feed_comes(rung: list[UUID], days: Callable[[int], None]) -> Feed:
    """Its hour comes, and a minute later there is another look at the clock."""
    days(1)
    for _look in range(2):
        firing.fire_due()
        work(rung)
    return Feed.objects.get()


def test_a_feed_is_written_while_a_call_waits_for_approval(
    goal: Goal, thread: Thread, rung: list[UUID], days: Callable[[int], None], llm: LLMServer
) -> None:
    calls = len(llm.requests)
    llm.always(mind)
    assert feed_comes(rung, days).brief == WRITTEN["brief"]
    assert len(llm.requests) == calls + 2, "to give way costs nothing"
    first, feed = AgentRun.objects.filter(thread=thread).order_by("created_at")
    assert (first.status, first.reason) == (RunStatus.SUCCEEDED, "gave_way")
    assert (feed.status, feed.context_type) == (RunStatus.SUCCEEDED, "feed_generation")
    action = AgentAction.objects.get(tool="send_email")
    assert (action.status, action.approval.state) == ("proposed", ApprovalState.REQUESTED)
    assert not ThreadMessage.objects.filter(thread=thread, source="agent", content__contains="As you say").exists()
    assert "waits for the user's approval" in str(llm.requests[-2].messages)
    assert_quiet(goal, llm)


@pytest.mark.parametrize("state", [APPROVED, REJECTED])
def test_what_waited_is_decided_days_later_and_done_once(
    state: ApprovalState,
    goal: Goal,
    thread: Thread,
    rung: list[UUID],
    days: Callable[[int], None],
    llm: LLMServer,
    world: World,
) -> None:
    llm.always(mind)
    feed_comes(rung, days)
    decide(AgentAction.objects.get(tool="send_email"), state)
    work(rung)
    assert world.texts("send_email") == (["hello"] if state is APPROVED else [])
    assert ThreadMessage.objects.filter(thread=thread, content="As you say.").count() == 1
    assert_quiet(goal, llm)


def test_without_anything_to_tell_nothing_gives_way(
    thread: Thread, rung: list[UUID], days: Callable[[int], None], llm: LLMServer
) -> None:
    Feed.objects.all().delete()
    ThreadMessage.objects.exclude(thread=thread).delete()
    Goal.objects.update(archived_at=timezone.now())
    days(1)
    firing.fire_due()
    work(rung)
    assert not Feed.objects.exists()
    assert AgentRun.objects.get(thread=thread).status == RunStatus.WAITING_APPROVAL


def test_what_is_decided_as_it_gives_way_is_carried_out_and_the_run_goes_on(
    goal: Goal, thread: Thread, rung: list[UUID], days: Callable[[int], None], llm: LLMServer, world: World
) -> None:
    llm.always(mind)
    days(1)
    firing.fire_due()
    decide(AgentAction.objects.get(tool="send_email"), APPROVED)
    work(rung)
    firing.fire_due()
    work(rung)
    assert world.texts("send_email") == ["hello"]
    assert "As you say." in ThreadMessage.objects.filter(thread=thread).values_list("content", flat=True)
    assert AgentRun.objects.filter(thread=thread).count() == 2, "the run itself goes on"
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert_quiet(goal, llm)


def test_who_writes_as_it_gives_way_is_answered_before_the_feed(
    goal: Goal, thread: Thread, rung: list[UUID], days: Callable[[int], None], llm: LLMServer
) -> None:
    llm.always(mind)
    days(1)
    firing.fire_due()
    services.send_message(thread, "By the way, hello")
    work(rung)
    firing.fire_due()
    work(rung)
    assert ThreadMessage.objects.filter(thread=thread, content="As you say.").count() == 1
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert Approval.objects.get().state == ApprovalState.REQUESTED
    assert_quiet(goal, llm)


def test_a_run_that_is_stopped_as_it_gives_way_is_stopped(
    goal: Goal, thread: Thread, rung: list[UUID], days: Callable[[int], None], llm: LLMServer
) -> None:
    days(1)
    firing.fire_due()
    run = AgentRun.objects.select_related("thread").get(thread=thread)
    stop_run(run)
    work(rung)
    run.refresh_from_db()
    assert (run.status, run.reason) == (RunStatus.CANCELLED, "stopped")
    assert Approval.objects.get().state == ApprovalState.CANCELLED
    assert_quiet(goal, llm)


@pytest.mark.parametrize("point", ["D1.after", "D4.before", "D4.after", "D6.before", "D6.after", "D8.before"])
def test_a_worker_that_dies_as_the_run_gives_way_leaves_it_to_the_next(
    point: str,
    goal: Goal,
    thread: Thread,
    rung: list[UUID],
    days: Callable[[int], None],
    llm: LLMServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    days(1)
    firing.fire_due()
    calls, run_id = len(llm.requests), rung.pop(0)

    def killed(*_: object) -> None:
        raise Killed

    monkeypatch.setattr("signal.pthread_kill", killed)
    crashpoints.arm(point)
    die(run_id)
    sweeper.sweep()
    work(rung)
    assert len(llm.requests) == calls
    run = AgentRun.objects.get(thread=thread)
    assert (run.status, run.reason, run.recoveries) == (RunStatus.SUCCEEDED, "gave_way", 1)
    llm.always(mind)
    firing.fire_due()
    work(rung)
    assert Feed.objects.get().brief == WRITTEN["brief"]
    assert_quiet(goal, llm)
