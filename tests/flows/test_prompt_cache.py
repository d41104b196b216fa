"""What a vendor may cache of a conversation: its requests begin with the same bytes, whatever happens in between."""

import itertools
from collections.abc import Iterator

import pytest
from django.db.models import Sum
from django.test import Client

from agents import services
from agents.live.stream import redis_client
from agents.models import ModelCall
from goals.models import Goal
from memory.models import AgentRun
from tests.factories import GoalFactory, bearer, think_with
from tests.llm_prefix import BYTES_PER_TOKEN, END, PrefixCache
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker

pytestmark = pytest.mark.programs

TURNS = 40
# Every fifth turn calls tools first. The keys of the arguments are not in the order in which a database keeps them.
NOTE = ("create_note", {"title": "Schuhe für Graz — “blau”", "body": "é\u2028 1 < 2 & 3"})
SEARCH = ("search_notes", {"query": "blau"})


@pytest.fixture
def goal(transactional_db: None, llm: LLMServer) -> Goal:
    redis_client().flushdb()
    goal: Goal = GoalFactory()
    think_with(goal.user, llm.url)
    return goal


def answer(request: Request) -> Reply:
    number = len(request.messages)
    if "make a note" in request.last_user_text and not request.results:
        return Reply(text=f"Let me see. {number}", calls=[NOTE, SEARCH], thinking="They want a note.")
    return Reply(text=f"Answer {number}: **ä** “quoted” \\ end\n\n- one\n- two", thinking="Hm." if number % 3 else "")


def say(goal: Goal, turn: int) -> None:
    services.send_message(goal.thread, f"Turn {turn}{', make a note' if turn % 5 == 0 else ''} — “ü” \t <b>")
    wait_until(lambda: not AgentRun.objects.live().filter(thread=goal.thread).exists(), 60)


def turns_of_new_workers(goal: Goal) -> Iterator[int]:
    """40 turns by three workers, one after the other; none knows anything that is not in the database."""
    for first, last in ((0, 15), (15, 30), (30, TURNS)):
        with worker():
            yield from range(first, last)


def test_the_prefix_is_the_same_bytes_over_forty_turns_and_three_workers(goal: Goal, llm: LLMServer) -> None:
    model = PrefixCache(answer)
    llm.always(model)
    for turn in turns_of_new_workers(goal):
        say(goal, turn)
    assert not llm.violations
    assert len(llm.requests) == TURNS + TURNS // 5
    for before, after in itertools.pairwise(llm.requests):
        assert before.raw.endswith(END)
        kept = before.raw.removesuffix(END)
        assert after.raw[: len(kept)] == kept
    assert all(cached >= size - len(END) for cached, size in zip(model.cached[1:], model.sizes[:-1], strict=True))


def test_cached_tokens_are_counted_and_shown(goal: Goal, llm: LLMServer) -> None:
    model = PrefixCache(answer)
    llm.always(model)
    with worker():
        for turn in range(1, 4):
            say(goal, turn)
    said = sum(cached // BYTES_PER_TOKEN for cached in model.cached)
    assert said > sum(model.sizes) // BYTES_PER_TOKEN / 2
    assert ModelCall.objects.aggregate(all=Sum("cached_tokens"))["all"] == said
    assert sum(run.cached_tokens for run in AgentRun.objects.filter(thread=goal.thread)) == said
    shown = Client(headers=bearer(goal.user)).get("/api/v1/costs").json()
    assert shown["total"]["tokens"]["cached"] == said
    client = Client()
    client.force_login(goal.user)
    assert f">{said:,}</td>" in client.get("/settings/costs/").content.decode()
    run = AgentRun.objects.filter(thread=goal.thread).latest("id")
    assert f"{run.cached_tokens:,} cached" in client.get("/jobs/").content.decode()
