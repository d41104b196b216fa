"""The page of jobs: runs with the helpers beneath them, and why each of them waits, stands still or has failed."""

import re
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from agents.live.screen import whole
from agents.models import AgentTask, ModelCall, TaskStatus
from goals import firing, schedules
from goals.models import Goal, Schedule
from memory.models import AgentRun, RunStatus, ThreadMessage
from tests.factories import AgentRunFactory, AgentTaskFactory, GoalFactory, ModelCallFactory, ThreadMessageFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def goal(client: Client) -> Goal:
    goal: Goal = GoalFactory.create(title="Compare shoes")
    client.force_login(goal.user)
    return goal


@pytest.fixture
def sender(goal: Goal) -> AgentRun:
    run: AgentRun = AgentRunFactory.create(thread=goal.thread)
    return run


def page(client: Client) -> str:
    return client.get("/jobs/").content.decode()


def jobs(html: str) -> list[str]:
    """The parts of the page, one for each job; helpers are inside theirs."""
    return html.split('<li id="job-')[1:]


def helper(sender: AgentRun, title: str, **fields: object) -> AgentRun:
    task = AgentTaskFactory(parent=sender.thread, user=sender.thread.user, sent_by=sender, title=title, **fields)
    run: AgentRun = AgentRunFactory(thread=task.thread, trigger="task", status=RunStatus.FAILED)
    return run


def text_of(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_helpers_stand_under_the_run_that_sent_them(client: Client, goal: Goal, sender: AgentRun) -> None:
    helper(sender, "Trail shoes", status=TaskStatus.COMPLETED)
    AgentRunFactory(thread=goal.thread)
    newest, parent = jobs(page(client))
    assert "Trail shoes" not in newest
    assert parent.startswith(str(sender.pk))
    assert "Trail shoes reported" in text_of(parent)


def test_a_job_says_what_it_was_about(client: Client, goal: Goal, sender: AgentRun) -> None:
    for words in ("Could my **shoes** be\npart of it? " + "They are old. " * 50, "And the insoles?"):
        ThreadMessageFactory(thread=goal.thread, run=sender, content=words)
    schedules.add(goal.thread, "in 2 hours", "Look for news of the race.")
    Schedule.objects.filter(kind="once").update(next_at=timezone.now())
    assert firing.fire_due() == 1
    by_clock, by_person = jobs(page(client))
    assert "“Could my shoes be part of it? They are old." in text_of(by_person)
    assert "insoles" not in by_person
    assert by_person.count("They are old") < 15
    assert "Look for news of the race. the clock" in text_of(by_clock)


def test_the_trail_of_helpers_leads_on_while_one_is_at_work(client: Client, sender: AgentRun) -> None:
    done = helper(sender, "Trail shoes", status=TaskStatus.COMPLETED)
    assert 'helpers" data-open' not in page(client)
    AgentTask.objects.filter(thread=done.thread).update(status=TaskStatus.ACTIVE)
    assert 'helpers" data-open' in page(client)


def test_a_paused_helper_says_why_since_when_and_until_when(client: Client, sender: AgentRun) -> None:
    now = timezone.now()
    helper(sender, "Trail shoes", status="paused", paused_at=now, resume_at=now + timedelta(minutes=5), result="Busy.")
    helper(sender, "Road shoes", status="paused", paused_at=now, result="The key was refused.")
    (job,) = jobs(page(client))
    words = text_of(job)
    assert "Trail shoes is paused since" in words
    assert "Busy. Trying again at" in words
    assert f'data-until="{(now + timedelta(minutes=5)).isoformat(timespec="seconds")[:16]}' in job
    assert "The key was refused. Nothing says that this passes by itself." in words


def test_a_helper_that_was_resumed_is_one_line(client: Client, sender: AgentRun) -> None:
    first = helper(sender, "Trail shoes", status=TaskStatus.ACTIVE)
    AgentRunFactory(thread=first.thread, status=RunStatus.RUNNING, started_at=timezone.now(), step=3)
    (job,) = jobs(page(client))
    assert "Trail shoes is at work 2 runs · 3 steps" in text_of(job)
    assert "Stop Trail shoes" in job


def test_a_helper_that_has_reported_says_how_long_it_took(client: Client, sender: AgentRun) -> None:
    done = helper(sender, "Trail shoes", status=TaskStatus.COMPLETED)
    now = timezone.now()
    began = now - timedelta(seconds=75)
    AgentRunFactory(thread=done.thread, status=RunStatus.SUCCEEDED, started_at=began, finished_at=now, step=3)
    (job,) = jobs(page(client))
    assert "Trail shoes reported 2 runs · 3 steps 1 min" in text_of(job)


def test_a_run_that_waits_for_its_model_says_why_and_how_long(client: Client, goal: Goal) -> None:
    due = timezone.now() + timedelta(minutes=5)
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.RETRY_WAIT, due_at=due)
    about = {"attempt": 2, "of": 5, "retryable": True}
    ThreadMessageFactory(thread=goal.thread, run=run, source="error", content="Overloaded.", metadata=about)
    (job,) = jobs(page(client))
    assert "waits to try again Overloaded. Trying again at" in text_of(job)
    assert "(2 of 5)" in job
    assert "data-until" in job


def test_what_a_job_waited_for_money_is_not_counted_as_work(client: Client, goal: Goal, sender: AgentRun) -> None:
    begun = timezone.now() - timedelta(hours=2)

    def later(minutes: int) -> datetime:
        return begun + timedelta(minutes=minutes)

    AgentRun.objects.update(status=RunStatus.SUCCEEDED, started_at=begun, finished_at=later(60))
    for told in (10, 12, 40):
        message = ThreadMessageFactory(thread=goal.thread, run=sender, metadata={"reason": "budget"})
        ThreadMessage.objects.filter(pk=message.pk).update(created_at=later(told))
    for asked in (5, 30, 50):
        call = ModelCallFactory(run=sender, cost=None)
        ModelCall.objects.filter(pk=call.pk).update(created_at=later(asked))
    [job] = jobs(page(client))
    assert "waited 30 min 30 min" in text_of(job), "from 10 to 30 and from 40 to 50"


def test_a_run_that_waits_for_a_person_leads_to_the_question(client: Client, goal: Goal) -> None:
    AgentRunFactory(thread=goal.thread, status=RunStatus.WAITING_APPROVAL)
    (job,) = jobs(page(client))
    assert f'href="/goals/{goal.pk}/"' in job
    assert "Read it and decide" in job


def test_a_run_whose_turn_has_not_come_says_so(client: Client, goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_MAX_RUNNING_PER_USER = 1
    AgentRunFactory(thread=goal.thread, status=RunStatus.QUEUED)
    assert "waits for a worker" in page(client)
    assert "Waiting for a worker" in whole(goal.thread).bar
    AgentRunFactory(thread=GoalFactory(user=goal.user).thread, status=RunStatus.RUNNING)
    assert "waits for your other runs" in page(client)
    assert "Its turn comes when another of your agents is done." in page(client)
    assert "Waits for your other runs" in whole(goal.thread).bar


def test_a_job_leads_to_its_turn_however_old_it_is(client: Client, goal: Goal) -> None:
    runs = [AgentRunFactory(thread=goal.thread, status=RunStatus.FAILED) for _ in range(15)]
    asked = [ThreadMessageFactory(thread=goal.thread, run=run, content=f"Say {run.pk}") for run in runs]
    for run, message in zip(runs, asked, strict=True):
        ThreadMessageFactory(thread=goal.thread, run=run, source="error", content="Refused.")
        assert f'href="/jobs/{run.pk}/"' in page(client)
        answer = client.get(f"/jobs/{run.pk}/")
        address, _, fragment = answer["Location"].partition("#")
        assert fragment == f"turn-{message.pk}"
        assert f'id="{fragment}"' in client.get(address).content.decode()
    silent = AgentRunFactory(thread=goal.thread)
    assert client.get(f"/jobs/{silent.pk}/")["Location"] == f"/goals/{goal.pk}/"
    client.force_login(GoalFactory().user)
    assert client.get(f"/jobs/{silent.pk}/").status_code == 404


def test_a_helper_whose_sender_is_gone_is_a_job_of_its_own(client: Client, goal: Goal, sender: AgentRun) -> None:
    helper(sender, "Trail shoes")
    sender.delete()
    (job,) = jobs(page(client))
    assert "Trail shoes" in job


def test_helpers_of_others_are_not_shown(client: Client, goal: Goal, sender: AgentRun) -> None:
    stranger: User = GoalFactory().user
    helper(sender, "Trail shoes")
    client.force_login(stranger)
    assert "Trail shoes" not in page(client)


def test_many_helpers_cost_no_more_queries(
    client: Client, sender: AgentRun, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    helper(sender, "One")
    page(client)
    with django_assert_max_num_queries(15):
        page(client)
    for number in range(10):
        helper(sender, f"Helper {number}")
    with django_assert_max_num_queries(15):
        page(client)
