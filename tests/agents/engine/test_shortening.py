"""A model whose window is smaller than the conversation (cases PRV-10 and HIS-03)."""

import threading
from collections.abc import Callable

import pytest

from agents.engine.leases import leases
from agents.models import ModelCall
from goals.models import Goal
from memory.encoding import dumps
from memory.models import AgentHistory, AgentRun, HistoryEntry, Source, ThreadMessage
from tests.agents.engine.test_archiving import SUMMARY, asks_for_summary, live, summaries, talk
from tests.agents.engine.test_orchestrator import assert_quiet, cells
from tests.llm_script import Reply, Request, Status, Step
from tests.llm_server import LLMServer
from tools.base import Outcome
from tools.builtin.notes import ListNotes
from tools.cancel import BY_USER

type Say = Callable[[str], AgentRun]

LIMIT = 14_000
SPOKEN = "maximum context length is 8192 tokens"
DIALECTS = {
    "a": Status(400, body={"error": {"code": "context_length_exceeded", "message": SPOKEN}}),
    "b": Status(
        400,
        body={
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "message": "request (9001 tokens) exceeds the available context size (8192 tokens)",
            }
        },
    ),
    "c": Status(
        400,
        body={
            "error": {
                "message": f"This model's {SPOKEN}. However, you requested 1024 output tokens and your prompt contains "
                "at least 7169 input tokens",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
    ),
    "d": Status(
        400,
        body={
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"},
        },
    ),
    "e": Status(413, body=b"<html><body><h1>413 Request Entity Too Large</h1></body></html>"),
}


def small_model(refusal: Step, limit: int = LIMIT) -> Callable[[Request], Step]:
    """Refuses what is longer than `limit` bytes, whoever asks; without the tools, of which there may be ever more."""

    def answer(request: Request) -> Step:
        if len(request.raw) - len(dumps(request.body.get("tools", []))) > limit:
            return refusal
        return Reply(text=SUMMARY if asks_for_summary(request) else "Here I am.")

    return answer


@pytest.mark.parametrize("dialect", DIALECTS)
def test_prv_10_too_long_is_understood_and_the_session_is_shortened(
    goal: Goal, say: Say, llm: LLMServer, dialect: str
) -> None:
    talk(goal, 40, size=300)
    llm.script([small_model(DIALECTS[dialect])] * 9)

    run = say("Are you there?")

    assert (run.status, cells(goal)[-1][2]) == ("succeeded", "Here I am.")
    session = AgentHistory.objects.get()
    assert (session.status, session.reason, session.summary) == ("done", "long", SUMMARY)
    assert len([request for request in llm.requests if not asks_for_summary(request)]) == 2
    last = llm.requests[-1].messages
    assert SUMMARY in last[0]["content"]
    assert last[1]["role"] == "user"
    assert "question 39" in str(last)
    assert "question 2 " not in str(last)
    assert "Are you there?" in live(goal)
    assert [call.status for call in ModelCall.objects.filter(run=run)] == ["failed", "done"]
    assert_quiet(goal, llm)


def test_prv_10_the_request_for_the_summary_fits_as_well(goal: Goal, say: Say, llm: LLMServer) -> None:
    talk(goal, 60, size=1_000)
    llm.script([small_model(DIALECTS["a"])] * 9)
    run = say("Are you there?")
    assert run.status == "succeeded"
    first, second, *_ = [len(request.raw) for request in llm.requests if asks_for_summary(request)]
    assert (first > LIMIT, second < LIMIT) == (True, True)
    assert [session.model for session in AgentHistory.objects.done()] == ["test-model"] * 2
    assert_no_loop(llm)
    assert_quiet(goal, llm)


def test_prv_10_a_long_result_in_the_open_turn_is_cut_for_this_run(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no older turn to archive; the open group is kept whole (case HIS-03 c)."""
    monkeypatch.setattr(ListNotes, "run", lambda *_: Outcome("n" * 19_000))
    llm.script([Reply(calls=[("list_notes", {})]), *[small_model(DIALECTS["b"])] * 9])

    run = say("Which races?")

    assert (run.status, cells(goal)[-1][2]) == ("succeeded", "Here I am.")
    assert [message["role"] for message in llm.requests[-1].messages] == ["system", "user", "assistant", "tool"]
    assert "characters left out" in llm.requests[-1].messages[-1]["content"]
    assert "left out" not in str(HistoryEntry.objects.get(role="tool").blocks), "only what is sent is cut"
    assert not AgentHistory.objects.exists()
    assert_no_loop(llm)
    assert_quiet(goal, llm)


def test_prv_10_the_user_is_told_which_message_is_too_large(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([small_model(DIALECTS["d"])] * 9)
    run = say("Read this: " + "word " * 8_000)
    assert (run.status, run.reason) == ("failed", "too_long")
    error = ThreadMessage.objects.get(source=Source.ERROR).content
    assert "Your message “Read this: word word" in error
    assert "40,0" in error
    assert len(llm.requests) == 1, "nothing could be made shorter, so nothing was sent again"
    assert_quiet(goal, llm)


def test_prv_10_at_most_two_repeats_and_never_the_same_bytes(goal: Goal, say: Say, llm: LLMServer) -> None:
    talk(goal, 10, size=2_000)
    summaries(llm, Reply(text=SUMMARY))
    llm.script([DIALECTS["a"]] * 9)
    run = say("Are you there?")
    assert run.status == "failed"
    talks = [request.raw for request in llm.requests if not asks_for_summary(request)]
    assert len(talks) == 3
    assert len({*talks}) == 3
    assert [len(raw) for raw in talks] == sorted(map(len, talks), reverse=True)
    assert_quiet(goal, llm)


def test_a_failed_summary_leaves_the_history_and_only_cuts_what_is_sent(goal: Goal, say: Say, llm: LLMServer) -> None:
    talk(goal, 5, size=6_000)
    summaries(llm, Status(500))
    llm.script([small_model(DIALECTS["a"], 60_000)] * 9)
    before = live(goal)
    assert say("Are you there?").status == "succeeded"
    assert AgentHistory.objects.get().status == "failed"
    assert live(goal).startswith(before)


def test_a_stop_during_the_summary_ends_the_run(goal: Goal, say: Say, llm: LLMServer) -> None:
    talk(goal, 10, size=2_000)
    hold = threading.Event()

    def stopped(request: Request) -> Step:
        for held in leases.held.values():
            threading.Timer(0.2, held.cancel.cancel, [BY_USER]).start()
        return Reply(text=SUMMARY, hold=hold)

    summaries(llm, stopped)
    llm.script([DIALECTS["a"]] * 9)
    run = say("Are you there?")
    hold.set()
    assert run.status == "cancelled"
    assert AgentHistory.objects.get().status == "reserved"
    assert "question 0" in live(goal)


def assert_no_loop(llm: LLMServer) -> None:
    assert len([request for request in llm.requests if not asks_for_summary(request)]) <= 3
