"""What a worker keeps of a conversation from run to run is always what stands in the rows."""

import json
from collections.abc import Callable
from unittest.mock import ANY
from uuid import UUID

import pytest

from goals.models import Goal
from memory import pool, quarantine, transcript
from memory.degrade import Rung
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
        assert len(tools) == 1, "made from the record of the call"
    assert not llm.violations


def test_conversations_not_used_for_longest_make_room(shelf: transcript.Shelf) -> None:
    small = transcript.Shelf(100)
    ids = [UUID(int=number) for number in range(3)]
    for each in ids:
        small.give(each, transcript.Past(next_seq=9, size=40))
    assert [small.take(each).next_seq for each in ids] == [1, 9, 9]


def test_a_first_turn_is_not_kept_and_the_last_turn_counts_among_what_is(
    goal: Goal, say: Say, llm: LLMServer, shelf: transcript.Shelf
) -> None:
    llm.script([Reply(text="Hello."), Reply(text="long " * 2_000)])
    say("one")
    assert shelf.take(goal.thread_id) == transcript.Past(grammar=ANY)
    say("two")
    assert shelf.take(goal.thread_id).room > 10_000, "what adapters keep of it fills the memory too"


def test_an_entry_put_in_quarantine_since_is_seen_plain_and_whole_again_after_its_release(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted."), *[Reply(text="Yes.") for _ in range(4)]])
    for text in ("Note: new shoes", "one", "two"):
        say(text)
    HistoryEntry.objects.filter(thread=goal.thread, seq__in=(2, 3)).update(quarantine=Rung.TEXT)
    say("three")
    assert not [message for message in llm.requests[-1].messages if message["role"] == "tool"]
    quarantine.release(goal.thread)
    say("four")
    assert [message for message in llm.requests[-1].messages if message["role"] == "tool"]


def test_a_call_under_an_id_of_the_past_is_dropped(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted."), *[Reply(text="Yes.") for _ in range(3)]])
    say("Note: new shoes")
    say("one")
    call = HistoryEntry.objects.get(thread=goal.thread, role="assistant", seq=2)
    last = HistoryEntry.objects.filter(thread=goal.thread).latest("seq").seq
    again = {"role": "assistant", "blocks": [*call.blocks, {"type": "text", "text": "Once more."}]}
    HistoryEntry.objects.create(thread=goal.thread, seq=last + 1, **again)
    say("two")
    assert llm.requests[-1].messages[-2]["content"] == "Once more."
    assert not llm.violations
