"""A server that refuses the history never gets the same bytes again; what had to be left out stays so, visibly."""

import itertools
import json
from collections.abc import Callable

import pytest

from goals.models import Goal
from memory.degrade import HISTORY_REFUSED, RESULT_LEFT_OUT, SHORT_RESULT, Remedy, Rung
from memory.models import AgentRun, HistoryEntry, RunStatus, Thread
from memory.quarantine import culprits, release
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet, cells
from tests.factories import HistoryEntryFactory, NoteFactory
from tests.llm_script import Reply, Request, Status
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

REFUSED = Status(400, body={"error": {"message": "messages.3: invalid content", "type": "invalid_request_error"}})
PICTURE = "data:image/png;base64,iVBORw0KGgo="
SEARCH = ("search_notes", {"query": "shoes"})


def refusing(poison: str, answer: Reply) -> Callable[[Request], Reply | Status]:
    """A server that refuses every request in which `poison` stands."""
    return lambda request: REFUSED if poison in request.raw.decode() else answer


def marks(goal: Goal) -> list[str]:
    return list(HistoryEntry.objects.filter(thread=goal.thread).values_list("quarantine", flat=True))


def bodies(llm: LLMServer) -> list[bytes]:
    return [request.raw for request in llm.requests]


def assert_never_the_same_twice(llm: LLMServer) -> None:
    assert len(set(bodies(llm))) == len(llm.requests)


def test_a_picture_that_is_refused_is_left_out_from_now_on(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([refusing(PICTURE, Reply(text="A shoe?"))] * 2 + [Reply(text="Yes.")])
    say(f"What is this? {PICTURE}")
    assert cells(goal)[-1] == ("agent", "text", "A shoe?")
    assert marks(goal) == ["media", ""]
    assert PICTURE in json.dumps(HistoryEntry.objects.earliest("seq").blocks), "the row is as it was"

    say("Sure?")

    assert PICTURE not in llm.requests[-1].raw.decode()
    assert len(llm.requests) == 3, "the next call is not refused any more"
    assert_never_the_same_twice(llm)
    assert_quiet(goal, llm)


def test_a_long_result_that_is_refused_is_shortened(goal: Goal, say: Say, llm: LLMServer) -> None:
    for words in ("shoes " * 45, "shoes " * 40 + "POISON", "shoes " * 45):
        NoteFactory(thread=goal.thread, user=goal.user, body=words)
    llm.script([Reply(calls=[SEARCH]), *[refusing("POISON", Reply(text="Found them."))] * 2])
    run = say("Where are my shoes?")
    assert "POISON" in llm.requests[1].raw.decode()
    assert run.status == RunStatus.SUCCEEDED
    assert marks(goal) == ["", "", "short", ""]
    assert "characters left out" in llm.requests[-1].messages[-1]["content"]
    assert len(llm.requests[-1].messages[-1]["content"]) <= SHORT_RESULT
    assert_never_the_same_twice(llm)


def test_calls_that_are_refused_become_text_and_the_run_goes_on_with_tools(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    llm.script(
        [Reply(calls=[NOTE])] + [refusing("tool_call_id", Reply(calls=[SEARCH]))] * 2 + [Reply(text="Noted and found.")]
    )
    run = say("Note: new shoes")
    assert run.status == RunStatus.SUCCEEDED
    assert marks(goal) == ["", "text", "text", "", "", ""]
    assert RESULT_LEFT_OUT in llm.requests[2].raw.decode()
    assert "create_note" in str(llm.requests[-1].messages)
    assert_never_the_same_twice(llm)
    assert_quiet(goal, llm)


def test_a_server_that_refuses_everything_is_asked_a_few_times_and_then_it_is_said(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    llm.script([Reply(calls=[NOTE]), *[REFUSED] * 20])
    run = say(f"Note: new shoes {PICTURE}")
    assert (run.status, run.reason) == (RunStatus.FAILED, HISTORY_REFUSED)
    assert len(llm.requests) <= 1 + 5
    assert cells(goal)[-1][0] == "error"
    assert set(marks(goal)) == {""}, "nothing is put away when it did not help"
    assert_never_the_same_twice(llm)
    assert_quiet(goal, llm)


def test_a_released_history_is_seen_whole_again(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([refusing(PICTURE, Reply(text="A shoe?"))] * 2 + [Reply(text="A red one.")])
    say(f"What is this? {PICTURE}")
    assert release(goal.thread) == 1
    say("And now?")
    assert PICTURE in llm.requests[-1].raw.decode()
    assert cells(goal)[-1][2] == "A red one."


@pytest.mark.parametrize("status", [400, 422])
def test_i16_the_same_bytes_are_never_sent_again_after_a_refusal(
    goal: Goal, say: Say, llm: LLMServer, status: int
) -> None:
    llm.script([Status(status, body={"error": {"message": "server_error, try again later"}})] * 9)
    assert say("Hi").status == RunStatus.FAILED
    for earlier, later in itertools.pairwise(bodies(llm)):
        assert earlier != later
    assert_never_the_same_twice(llm)


def test_what_is_archived_is_not_put_in_quarantine(goal: Goal) -> None:
    for seq in range(1, 9, 2):
        call = {"type": "tool_use", "id": f"c{seq}", "name": "search_notes", "arguments": {}}
        HistoryEntryFactory(thread=goal.thread, seq=seq, role="assistant", blocks=[call])
        result = {"type": "tool_result", "id": f"c{seq}", "content": "nothing"}
        HistoryEntryFactory(thread=goal.thread, seq=seq + 1, role="tool", blocks=[result])
    Thread.objects.filter(pk=goal.thread.pk).update(from_seq=7, generation=1)
    assert culprits(goal.thread.pk, Remedy(Rung.TEXT, whole=True)) == [7, 8]
