"""A user's message through the job that RQ calls: what is answered, recorded and counted."""

import itertools
import threading
import uuid
from collections.abc import Callable
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connections as database
from pytest_django import Settings

from agents import services
from agents.engine import jobs
from agents.engine.leases import leases
from agents.models import AgentTask, ModelCall
from agents.stopping import stop_run
from goals.models import Goal
from memory.models import AgentRun, HistoryEntry, Note, ThreadMessage
from tests.llm_script import DONE, D, F, Hang, Raw, Reply, Status
from tests.llm_server import LLMServer
from tools.models import OPEN, AgentAction

type Say = Callable[[str], AgentRun]

NOTE = ("create_note", {"title": "Shoes", "body": "New ones"})


@pytest.fixture(autouse=True)
def no_pauses(settings: Settings) -> None:
    settings.WAYMARK_RETRY_HELD_SECONDS = 0.01


def cells(goal: Goal) -> list[tuple[str, str, str]]:
    return [(m.source, m.message_type, m.content) for m in ThreadMessage.objects.filter(thread=goal.thread)]


def roles(goal: Goal) -> list[str]:
    return list(HistoryEntry.objects.filter(thread=goal.thread).values_list("role", flat=True))


def assert_quiet(goal: Goal, llm: LLMServer) -> None:
    """Nothing is left behind: no live run, no waiting message, no open action, nothing a strict vendor refuses."""
    goal.thread.refresh_from_db()
    assert goal.thread.live_run is None
    assert goal.thread.pending == 0
    assert not AgentRun.objects.live().exists()
    assert not AgentAction.objects.filter(status__in=OPEN).exists()
    assert not ModelCall.objects.filter(status="started").exists()
    assert not leases.held
    assert not llm.violations


def test_a_message_is_answered_and_the_run_is_recorded(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="Hello **you**")])

    run = say("Hi")

    assert cells(goal) == [("user", "text", "Hi"), ("agent", "text", "Hello **you**")]
    assert (run.status, run.trigger, run.step, run.error) == ("succeeded", "message", 1, "")
    assert run.started_at
    assert run.finished_at
    assert run.finished_at >= run.started_at
    assert_quiet(goal, llm)


def test_a_note_is_created_by_a_tool_and_everything_about_it_is_on_record(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="Let me note that.", calls=[NOTE]), Reply(text="Noted.")])

    run = say("Note: new shoes")

    note = Note.objects.get(thread=goal.thread)
    assert (note.title, note.body, note.author) == ("Shoes", "New ones", "agent")
    action = AgentAction.objects.get(run=run)
    assert (action.tool, action.status, action.effect, action.reversal) == ("create_note", "done", "local", "undoable")
    assert action.arguments == NOTE[1]
    assert action.undo
    (change,) = action.undo["changes"]
    assert (change["kind"], change["id"], change["before"], change["after"]["body"]) == (
        "note",
        str(note.pk),
        None,
        "New ones",
    )
    assert action.user_id == goal.user_id
    assert action.started_at
    assert action.finished_at
    assert roles(goal) == ["user", "assistant", "tool", "assistant"]
    assert [kind for _, kind, _ in cells(goal)] == ["text", "text", "tool", "text"]
    assert ThreadMessage.objects.get(thread=goal.thread, message_type="tool").metadata == {"action": str(action.pk)}
    assert_quiet(goal, llm)


def test_the_cost_is_counted_per_call_and_run(goal: Goal, say: Say, llm: LLMServer) -> None:
    goal.user.model_connections.update(kind="openai", model="gpt-5-mini")
    llm.script([Reply(calls=[NOTE], usage=(1000, 100, 400)), Reply(text="Noted.", usage=(2000, 50))])

    run = say("Note: new shoes")

    first = (600 * Decimal("0.25") + 400 * Decimal("0.025") + 100 * 2) / 1_000_000
    second = (2000 * Decimal("0.25") + 50 * 2) / 1_000_000
    assert [call.cost for call in ModelCall.objects.filter(run=run)] == [first, second]
    assert (run.cost, run.cost_known) == (first + second, True)
    assert (run.input_tokens, run.output_tokens, run.cached_tokens) == (3000, 150, 400)


def test_an_unknown_price_stays_unknown(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="Hello")])
    run = say("Hi")
    assert run.cost == 0
    assert not run.cost_known
    assert ModelCall.objects.get(run=run).cost is None


def test_a_tools_error_goes_to_the_model_and_touches_nothing(goal: Goal, say: Say, llm: LLMServer) -> None:
    calls = [("create_note", {"title": " ", "body": "x"}), ("create_note", {"titel": "x"}), ("no_such_tool", {})]
    llm.script([Reply(calls=calls), Reply(text="I could not.")])

    run = say("Note")

    assert not Note.objects.exists()
    assert [action.status for action in AgentAction.objects.filter(run=run)] == ["error"] * 3
    answers = [message["content"] for message in llm.requests[-1].messages if message["role"] == "tool"]
    assert "needs a title" in answers[0]
    assert "titel" in answers[1]
    assert "create_note" in answers[2]
    assert run.status == "succeeded"
    assert_quiet(goal, llm)


def test_what_send_message_says_is_shown_once_and_ends_the_run(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(text="All done", calls=[("send_message", {"text": "All done"})])])

    run = say("Hi")

    assert [text for source, kind, text in cells(goal) if source == "agent" and kind == "text"] == ["All done"]
    assert run.status == "succeeded"
    assert len(llm.requests) == 1
    assert_quiet(goal, llm)


def test_the_next_message_continues_the_same_history(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted.")])
    say("Note: new shoes")

    say("ping")

    assert cells(goal)[-1] == ("agent", "text", "pong")
    assert_quiet(goal, llm)


def test_the_prompts_prefix_is_the_same_bytes_from_call_to_call(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted."), Reply(text="Yes."), Reply(text="Again.")])
    for text in ("Note: new shoes", "Are you sure?", "And now?"):
        say(text)

    bodies = [request.raw[: request.raw.rindex(b"]}")] for request in llm.requests]
    for earlier, later in itertools.pairwise(bodies):
        assert later[: len(earlier)] == earlier


def test_the_time_and_changed_notes_precede_the_users_words(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[NOTE]), Reply(text="Noted."), Reply(text="Yes."), Reply(text="Again.")])
    for text in ("Note: new shoes", "Second", "Third"):
        say(text)

    asked = [message["content"] for message in llm.requests[-1].messages if message["role"] == "user"]
    assert "<time>" in asked[0]
    assert "<notes>" not in asked[0]
    assert "- Shoes: New ones" in asked[1]
    assert asked[1].endswith("Second")
    assert "<notes>" not in asked[2], "the notes have not changed since"


def test_messages_sent_while_a_run_is_busy_are_taken_up_by_it(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    def meanwhile(request: object) -> Reply:
        services.send_message(goal.thread, "And the socks?")
        return Reply(calls=[NOTE])

    llm.script([meanwhile, Reply(text="Shoes and socks are noted.")])
    services.send_message(goal.thread, "Note: new shoes")
    jobs.run(str(rung.pop(0)))

    assert not rung
    assert AgentRun.objects.count() == 1
    assert roles(goal) == ["user", "assistant", "tool", "user", "assistant"]
    assert [text for _, kind, text in cells(goal) if kind == "text"][-2:] == [
        "And the socks?",
        "Shoes and socks are noted.",
    ]
    assert_quiet(goal, llm)


def test_a_message_that_comes_as_the_run_ends_is_answered_by_the_next(goal: Goal, say: Say, llm: LLMServer) -> None:
    def meanwhile(request: object) -> Reply:
        services.send_message(goal.thread, "ping")
        return Reply(text="First answer")

    llm.script([meanwhile])
    say("Hi")

    assert [text for _, _, text in cells(goal)] == ["Hi", "First answer", "ping", "pong"]
    assert [run.status for run in AgentRun.objects.all()] == ["succeeded", "succeeded"]
    assert_quiet(goal, llm)


def test_prv_03_an_error_in_mid_stream_is_retried_and_the_partial_text_is_void(
    goal: Goal, say: Say, llm: LLMServer
) -> None:
    failure = b'data: {"id":"c1","choices":[],"error":{"code":502,"message":"worker limit reached (33/32)"}}\n\n'
    llm.script([Raw([D({"role": "assistant", "content": "Let me "}), failure, DONE]), Reply(text="Let me help.")])

    run = say("Hi")

    assert [text for source, _, text in cells(goal) if source == "agent"] == ["Let me help."]
    calls = list(ModelCall.objects.filter(run=run).values_list("status", "error"))
    assert calls[0][0] == "failed"
    assert "worker limit reached" in calls[0][1]
    assert calls[1] == ("done", "")
    assert_quiet(goal, llm)


def test_prv_03_an_error_that_stays_is_shown_and_can_be_tried_again(
    goal: Goal, say: Say, llm: LLMServer, rung: list[UUID]
) -> None:
    llm.script([Raw([b'data: {"error":"STREAM_EXPLODED"}\n\n', DONE])])
    run = say("Hi")

    assert run.status == "failed"
    assert "STREAM_EXPLODED" in run.error
    message = ThreadMessage.objects.get(thread=goal.thread, source="error")
    assert "STREAM_EXPLODED" in message.content
    assert message.metadata["retryable"] is True
    assert_quiet(goal, llm)

    llm.script([Reply(text="Now it works")])
    services.retry(message)
    jobs.run(str(rung.pop()))
    assert cells(goal)[-1] == ("agent", "text", "Now it works")
    assert_quiet(goal, llm)


@pytest.mark.parametrize(
    ("arguments", "finish"),
    [
        ('{"title":"Shoes","body":"first line', "length"),
        ('{"title":"Shoes","body":"fi', "tool_calls"),
        ('{"title":"Shoes"}', "tool_calls"),
    ],
    ids=["a", "b", "c"],
)
def test_prv_04_cut_off_arguments_are_never_run(
    goal: Goal, say: Say, llm: LLMServer, arguments: str, finish: str
) -> None:
    llm.script([Reply(calls=[("create_note", arguments)], finish=finish), Reply(text="I was cut off.")])

    say("Note: new shoes")

    assert not Note.objects.exists()
    assert AgentAction.objects.get().status == "error"
    say("ping")
    assert cells(goal)[-1][2] == "pong"
    assert_quiet(goal, llm)


def test_prv_04_d_a_model_that_is_always_cut_off_is_stopped(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Reply(calls=[("create_note", '{"title":"Shoes","body":"fi')], finish="length")] * 9)
    run = say("Note: new shoes")
    assert run.status == "failed"
    assert run.reason == "broken_calls"
    assert len(llm.requests) == 3
    assert_quiet(goal, llm)


@pytest.mark.parametrize("text", ["", "\n \n"], ids=["b", "c"])
def test_his_04_an_empty_answer_is_a_notice_and_the_next_turn_works(
    goal: Goal, say: Say, llm: LLMServer, text: str
) -> None:
    llm.script([Raw([D({"content": text}), F("stop"), DONE])])
    say("Hi")
    assert cells(goal)[-1] == ("error", "text", "The model gave an empty answer.")
    say("ping")
    assert cells(goal)[-1][2] == "pong"
    assert_quiet(goal, llm)


@pytest.mark.parametrize(
    ("finish", "words"), [("length", "The answer is cut off"), ("content_filter", "The model declined to answer.")]
)
def test_an_answer_without_words_says_why(goal: Goal, say: Say, llm: LLMServer, finish: str, words: str) -> None:
    llm.script([Raw([D({"content": ""}), F(finish), DONE])])
    say("Hi")
    assert words in cells(goal)[-1][2]


def test_sto_01_and_sto_02_what_cannot_be_stored_is_shown_replaced(goal: Goal, say: Say, llm: LLMServer) -> None:
    arguments = '{"title":"n\\u0000x","body":"\\udfe1"}'
    answer = rb'{"content":"x\u0000y A\ud83d"}'
    chunk = b'data: {"id":"c1","choices":[{"index":0,"delta":' + answer + b',"finish_reason":null}]}\n\n'
    llm.script([Reply(calls=[("create_note", arguments)]), Raw([chunk, F("stop"), DONE])])

    say("a\x00b \ud83d")

    note = Note.objects.get()
    assert (note.title, note.body) == ("n\N{REPLACEMENT CHARACTER}x", "\N{REPLACEMENT CHARACTER}")
    texts = [text for _, kind, text in cells(goal) if kind == "text"]
    assert texts == ["a\ufffdb \ufffd", "x\ufffdy A\ufffd"]
    say("ping")
    assert_quiet(goal, llm)


def test_a_wrong_key_is_not_tried_twice(goal: Goal, say: Say, llm: LLMServer) -> None:
    llm.script([Status(401, body={"error": {"message": "Incorrect API key provided: key-of-the-test"}})])
    run = say("Hi")
    assert run.status == "failed"
    assert len(llm.requests) == 1
    assert "key-of-the-test" not in run.error
    assert_quiet(goal, llm)


def test_a_run_is_stopped_between_tokens(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    hold = threading.Event()
    llm.script([Reply(calls=[NOTE]), Reply(text="This would go on and on", hold=hold)])
    accepted = services.send_message(goal.thread, "Note: new shoes")
    worker = threading.Thread(target=work_in_thread, args=(rung.pop(),))
    worker.start()
    wait_until(lambda: len(llm.requests) == 2)

    stop_run(run_of(accepted))
    leases.renew()
    worker.join(timeout=30)
    hold.set()

    assert not worker.is_alive()
    run = run_of(accepted)
    assert (run.status, run.reason) == ("cancelled", "stopped")
    assert cells(goal)[-1] == ("agent", "text", "Stopped by you. Done before that: created a note Shoes.")
    assert_quiet(goal, llm)


def test_a_queued_run_is_stopped_at_once_and_its_message_is_kept(
    goal: Goal, rung: list[UUID], say: Say, llm: LLMServer
) -> None:
    accepted = services.send_message(goal.thread, "Never mind")
    stop_run(run_of(accepted))
    jobs.run(str(rung.pop()))

    assert run_of(accepted).status == "cancelled"
    assert not llm.requests
    say("ping")
    assert cells(goal)[-1][2] == "pong"
    assert [m["content"].split("\n")[-1] for m in llm.requests[-1].messages if m["role"] == "user"] == [
        "Never mind",
        "ping",
    ]
    assert_quiet(goal, llm)


def test_a_sub_agent_works_alone_and_its_report_wakes_the_parent(goal: Goal, say: Say, llm: LLMServer) -> None:
    task = ("create_task", {"title": "Shoes", "instructions": "Compare running shoes"})
    llm.script([Reply(calls=[task]), Reply(text="A helper is on it."), Reply(text="The helper says: red ones.")], "Go")
    llm.script([Reply(text="Red ones are best.")], "Compare running shoes")

    say("Go")

    child = AgentTask.objects.get()
    assert (child.status, child.result) == ("completed", "Red ones are best.")
    assert cells(goal)[-2:] == [
        ("agent", "text", "Red ones are best."),
        ("agent", "text", "The helper says: red ones."),
    ]
    assert {run.trigger for run in AgentRun.objects.all()} == {"message", "task", "report"}
    offered = {
        tool["function"]["name"] for r in llm.requests if "Compare" in r.first_user_text for tool in r.body["tools"]
    }
    assert offered.isdisjoint({"send_message", "create_task"}), "a task neither talks to the user nor delegates"
    assert_quiet(goal, llm)


def test_the_same_client_id_gives_one_message_and_one_run(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    client_id = uuid.uuid4()
    answers = []

    def post() -> None:
        answers.append(services.send_message(goal.thread, "Hi", client_id))
        database.close_all()

    posts = [threading.Thread(target=post) for _ in range(8)]
    for thread in posts:
        thread.start()
    for thread in posts:
        thread.join()

    assert len({answer.message.pk for answer in answers}) == len({answer.run_id for answer in answers}) == 1
    assert [answer.created for answer in answers].count(True) == 1
    assert ThreadMessage.objects.count() == AgentRun.objects.count() == len(rung) == 1


def test_only_one_of_many_workers_gets_a_run(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    llm.script([Reply(text="Once")])
    services.send_message(goal.thread, "Hi")
    run_id = rung.pop()
    workers = [threading.Thread(target=work_in_thread, args=(run_id,)) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [text for source, _, text in cells(goal) if source == "agent"] == ["Once"]
    assert_quiet(goal, llm)


def test_tools_that_are_switched_off_are_not_offered(goal: Goal, say: Say, llm: LLMServer) -> None:
    goal.modes = {"create_note": "off"}
    goal.save()
    llm.script([Reply(calls=[NOTE]), Reply(text="I cannot.")])
    say("Note")
    assert "create_note" not in {tool["function"]["name"] for tool in llm.requests[0].body["tools"]}
    assert not Note.objects.exists()


def test_iterations_are_limited_by_a_setting(goal: Goal, say: Say, llm: LLMServer, settings: Settings) -> None:
    settings.WAYMARK_MAX_ITERATIONS = 2
    llm.script([Reply(calls=[NOTE]), Reply(calls=[("search_notes", {"query": "x"})]), Reply(text="never asked")])
    run = say("Hi")
    assert (run.status, run.reason) == ("failed", "iterations")
    assert "2 steps" in cells(goal)[-1][2]
    assert_quiet(goal, llm)


def run_of(accepted: services.Accepted) -> AgentRun:
    assert accepted.run_id
    return AgentRun.objects.select_related("thread").get(pk=accepted.run_id)


def work_in_thread(run_id: UUID) -> None:
    try:
        jobs.run(str(run_id))
    finally:
        database.close_all()


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    ready = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        ready.wait(0.02)
    raise AssertionError("it did not happen in time")


def test_a_run_is_stopped_before_the_model_says_anything(goal: Goal, rung: list[UUID], llm: LLMServer) -> None:
    llm.script([Hang(20)])
    accepted = services.send_message(goal.thread, "Hi")
    worker = threading.Thread(target=work_in_thread, args=(rung.pop(),))
    worker.start()
    wait_until(lambda: len(llm.requests) == 1)
    stop_run(run_of(accepted))
    leases.renew()
    worker.join(timeout=15)
    assert run_of(accepted).status == "cancelled"
    assert_quiet(goal, llm)
