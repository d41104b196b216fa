"""What a worker keeps of a conversation from run to run is always what stands in the rows."""

import json
from collections.abc import Callable
from uuid import UUID

import pytest

from goals.models import Goal
from memory import pool, transcript
from memory.models import AgentRun, HistoryEntry
from tests.llm_server import LLMServer, Reply

type Say = Callable[[str], AgentRun]

NOTE = ("create_note", json.dumps({"title": "Shoes", "body": "New ones"}))


@pytest.fixture(autouse=True)
def shelf(monkeypatch: pytest.MonkeyPatch) -> transcript.Shelf:
    """A worker that has not worked yet."""
    shelf = transcript.Shelf(transcript.KEPT)
    monkeypatch.setattr(transcript, "_shelf", shelf)
    return shelf


def rows_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many entries each run has read."""
    counts: list[int] = []

    def counting(sql: str, parameters: dict[str, object]) -> list[pool.Row]:
        rows = pool.execute(sql, parameters)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(transcript, "pool", type("Counting", (), {"execute": staticmethod(counting)}))
    return counts


def test_a_run_reads_only_what_was_added_since_the_last(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = rows_read(monkeypatch)
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted."), *[Reply(text=f"Answer {n}.") for n in range(4)]])
    for text in ("Note: new shoes", "one", "two", "three", "four"):
        say(text)
    assert counts == [1, 5, 3, 3, 3], "the turn before, which is not known to be over, and the new message"
    assert len(llm.requests[-1].messages) == 1 + HistoryEntry.objects.count() - 1, "and yet the model sees everything"


def test_what_another_worker_has_added_is_seen(goal: Goal, say: Say, llm: LLMServer, shelf: transcript.Shelf) -> None:
    llm.script([Reply(text=f"Answer {number}.") for number in range(4)])
    say("one")
    say("two")
    mine = shelf.take(goal.thread_id)
    say("three, elsewhere")
    shelf.give(goal.thread_id, mine)
    say("four")
    said = [message["content"].split("\n")[-1] for message in llm.requests[-1].messages[1:]]
    assert said == ["one", "Answer 0.", "two", "Answer 1.", "three, elsewhere", "Answer 2.", "four"]


def test_a_turn_that_needs_repair_is_read_again_each_time(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted."), *[Reply(text="Yes.") for _ in range(3)]])
    say("Note: new shoes")
    HistoryEntry.objects.filter(thread=goal.thread, role="tool").delete()
    for text in ("one", "two", "three"):
        say(text)
        tools = [message for message in llm.requests[-1].messages if message["role"] == "tool"]
        assert [message["content"].startswith("Error: Interrupted") for message in tools] == [True]
    assert not llm.violations


def test_conversations_not_used_for_longest_make_room(shelf: transcript.Shelf) -> None:
    small = transcript.Shelf(100)
    ids = [UUID(int=number) for number in range(3)]
    for each in ids:
        small.give(each, transcript.Past(next_seq=9, size=40))
    assert [small.take(each).next_seq for each in ids] == [1, 9, 9]
