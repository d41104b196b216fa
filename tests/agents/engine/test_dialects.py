"""Whole runs with a model that speaks Anthropic's Messages, and with one after the other."""

import itertools
from collections.abc import Callable

import pytest

from agents.models import ModelCall
from goals.models import Goal
from memory import transcript
from memory.models import AgentRun, HistoryEntry, RunStatus, ThreadMessage
from tests.factories import think_with
from tests.llm_reasoning import Wants
from tests.llm_script import Reply, Request, Status, Step
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

NOTE = ("create_note", {"title": "Shoes", "body": "New ones"})
SEARCH = ("search_notes", {"query": "shoes"})
THOUGHT = "Plan:  two  spaces\n\n— ok "


@pytest.fixture
def anthropic(goal: Goal, llm: LLMServer) -> Goal:
    think_with(goal.user, llm.url, "key-of-the-test", "anthropic")
    return goal


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes this process one that has not worked yet."""
    return lambda: monkeypatch.setattr(transcript, "_shelf", transcript.Shelf(transcript.KEPT))


def told(goal: Goal) -> list[str]:
    return list(ThreadMessage.objects.filter(thread=goal.thread).order_by("position").values_list("content", flat=True))


def sent(request: Request) -> list[tuple[str, list[str]]]:
    return [(each["role"], [block["type"] for block in each["content"]]) for each in request.messages]


@pytest.mark.parametrize("is_new", [False, True], ids=["a", "c"])
def test_prv_08_thoughts_come_back_from_the_database(
    anthropic: Goal, say: Say, llm: LLMServer, forgotten: Callable[[], None], is_new: bool
) -> None:
    llm.script([Reply("Let me note it.", calls=[NOTE], thinking=THOUGHT, redacted="hidden"), Reply("Noted.")])
    say("Note: new shoes")
    if is_new:
        forgotten()
    llm.script([Reply("You are welcome.")])
    say("Thanks")
    thought = {"thinking": THOUGHT, "type": "thinking"}
    for request in llm.requests[1:]:
        first, second, *_ = request.messages[1]["content"]
        assert thought.items() <= first.items()
        assert second["type"] == "redacted_thinking"
    assert llm.requests[2].raw.startswith(llm.requests[1].raw.removesuffix(b"]}]}"))
    assert THOUGHT.strip() in told(anthropic)


@pytest.mark.parametrize("what", ["thoughts", "seals"])
def test_prv_08_results_are_seen_by_a_model_that_wants_its_thoughts_back(
    goal: Goal, say: Say, llm: LLMServer, forgotten: Callable[[], None], what: str
) -> None:
    think_with(goal.user, llm.url)
    llm.chat.wants = Wants(what)  # type: ignore[arg-type]
    llm.script(
        [Reply(calls=[NOTE], thinking=THOUGHT), Reply(calls=[SEARCH], thinking="Hm."), Reply("Noted.", thinking="So.")]
    )
    say("Note: new shoes")
    forgotten()
    llm.script([Reply("You are welcome.", thinking="How kind.")])
    say("Thanks")
    assert told(goal)[-1] == "You are welcome."
    assert (len(llm.requests), llm.violations) == (4, []), "no step is refused"
    assert not HistoryEntry.objects.exclude(quarantine="").exists()
    for before, after in itertools.pairwise(llm.requests):
        assert after.raw.startswith(before.raw.removesuffix(b"]}"))


def test_prv_03_c_what_broke_off_is_not_shown_twice(anthropic: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply("Let me ", error={"type": "overloaded_error", "message": "busy"}), Reply("Let me see.")])
    assert say("Hi").status == RunStatus.SUCCEEDED
    assert told(anthropic)[-1] == "Let me see."
    assert sum("Let me" in text for text in told(anthropic)) == 1


def test_his_04_d_a_turn_of_thoughts_only_is_told_and_does_no_harm(anthropic: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(thinking="Hm."), Reply("Well.")])
    say("Hi")
    assert told(anthropic)[-1].strip(), "a notice in the place of an empty bubble"
    think_with(anthropic.user, llm.url, "key-of-the-test", "compatible")
    say("ping")
    assert told(anthropic)[-1] == "pong"
    think_with(anthropic.user, llm.url, "key-of-the-test", "anthropic")
    say("ping")
    assert told(anthropic)[-1] == "pong"


def test_a_session_may_change_its_vendor_with_calls_in_it(
    goal: Goal, say: Say, llm: LLMServer, forgotten: Callable[[], None]
) -> None:
    for number, kind in enumerate(("openai", "anthropic", "openai", "anthropic")):
        think_with(goal.user, llm.url, "key-of-the-test", kind)
        call = ("create_note", {"title": f"Shoes {number}", "body": "New ones"})
        llm.script([Reply("One moment.", calls=[call, call], thinking=THOUGHT), Reply(f"Noted {number}.")])
        assert say(f"Note {number}").status == RunStatus.SUCCEEDED
        if number % 2:
            forgotten()
    assert [text for text in told(goal) if text.startswith("Noted")] == [f"Noted {number}." for number in range(4)]
    chats = [request for request in llm.requests if request.path.endswith("/chat/completions")]
    assert len(chats) == 4
    assert not any(b"signature" in request.raw for request in chats)
    assert b"signature" in llm.requests[-1].raw


def test_prv_10_d_a_prompt_that_is_too_long_is_shortened(
    anthropic: Goal, say: Say, llm: LLMServer, forgotten: Callable[[], None]
) -> None:
    llm.script([Reply("word " * 10_000), Reply("word " * 10_000), Reply("word " * 10_000)])
    for text in ("one", "two", "three"):
        say(text)

    def limited(request: Request) -> Step:
        if "<session>" in request.raw.decode():
            return Reply("They counted.")
        if len(request.raw) < 120_000:
            return Reply("Four.")
        error = {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000 maximum"}
        return Status(400, body={"type": "error", "error": error})

    llm.always(limited)
    assert say("four").status == RunStatus.SUCCEEDED
    assert told(anthropic)[-1] == "Four."


def test_cos_01_b_what_a_call_used_is_on_record(anthropic: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply("Ok.", usage=(82_060, 500, 80_000, 2_000))])
    run = say("Hi")
    call = ModelCall.objects.get(run=run)
    assert (call.input_tokens, call.output_tokens, call.cached_tokens) == (82_060, 500, 80_000)
