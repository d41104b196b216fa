"""Which model answers: the goal's own, the user's, the one for summaries, and the one that stands in (mission C2)."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from agents import services
from agents.connecting import Given, choose_for_uses, connect_model
from agents.engine import archiving, bell, jobs, sweeper
from agents.models import AgentTask, ModelCall, ModelConnection
from agents.providers.capabilities import Capabilities
from agents.services import assistant_of
from goals.models import Goal
from goals.services import choose_model
from memory.models import AgentHistory, AgentRun, ArchiveReason, RunStatus, ThreadMessage
from tests.agents.engine.test_orchestrator import NOTE, assert_quiet, cells
from tests.agents.engine.test_retries import OVERLOADED, let_it_come_due
from tests.factories import AgentTaskFactory
from tests.llm_ollama import LocalModel, OllamaServer
from tests.llm_script import Drop, Reply, Status, Step
from tests.llm_server import LLMServer
from tools.cancel import CancelToken

type Say = Callable[[str], AgentRun]

BAD_KEY = Status(401, body={"error": {"message": "key disabled"}})
REFUSED = Status(400, body={"error": {"message": "I do not like it"}})
TOO_LONG = Status(413)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(CancelToken, "sleep", lambda self, seconds: pauses.append(seconds))
    return pauses


@pytest.fixture
def other() -> Iterator[LLMServer]:
    with LLMServer() as server:
        yield server
        assert server.violations == []


def connect(user: User, server: LLMServer, model: str, **facts: bool) -> ModelConnection:
    """Another connection, beside the default."""
    given = Given(model, server.url, f"key-of-{model}", name=model.title())
    return connect_model(user, "compatible", given, Capabilities(**facts), default=False)


@pytest.fixture
def stand_in(goal: Goal, other: LLMServer) -> ModelConnection:
    connection = connect(goal.user, other, "spare")
    choose_for_uses(assistant_of(goal.user), summariser=None, stand_in=connection)
    return connection


def models_called() -> list[tuple[str, str]]:
    return [(call.model, call.status) for call in ModelCall.objects.order_by("created_at")]


@pytest.mark.parametrize(
    ("step", "tries"),
    [pytest.param(OVERLOADED, 3, id="529"), pytest.param(Drop(), 3, id="reset"), pytest.param(BAD_KEY, 1, id="401")],
)
def test_another_model_stands_in_after_the_held_tries_and_the_chat_says_so(
    goal: Goal, say: Say, llm: LLMServer, other: LLMServer, stand_in: ModelConnection, step: Step, tries: int
) -> None:
    llm.script([step] * tries)
    other.script([Reply(calls=[NOTE]), Reply("Noted.")])
    run = say("Note: new shoes")
    assert run.status == RunStatus.SUCCEEDED
    assert models_called() == [("test-model", "failed")] * tries + [("spare", "done")] * 2
    _, notice, _, answer = cells(goal)
    assert notice[2].startswith("test-model (OpenAI-compatible server) is out of reach; Spare answers instead.")
    assert answer == ("agent", "text", "Noted.")
    assert other.requests[0].key == "key-of-spare"
    assert_quiet(goal, llm)


def test_the_next_run_asks_the_chosen_model_again(
    goal: Goal, say: Say, llm: LLMServer, other: LLMServer, stand_in: ModelConnection
) -> None:
    llm.script([BAD_KEY, Reply("I am back.")])
    other.script([Reply("Meanwhile.")])
    say("Hi")
    say("Still there?")
    assert [text for _, _, text in cells(goal)][-1] == "I am back."


@pytest.mark.parametrize("step", [pytest.param(REFUSED, id="refused"), pytest.param(TOO_LONG, id="too-long")])
def test_what_a_model_refuses_goes_to_nobody_else(
    goal: Goal, say: Say, llm: LLMServer, other: LLMServer, stand_in: ModelConnection, step: Status
) -> None:
    llm.always(step)
    assert say("Hi").status == RunStatus.FAILED
    assert other.requests == []


def test_when_nobody_can_be_reached_the_run_waits_and_says_it_once(
    goal: Goal, say: Say, llm: LLMServer, other: LLMServer, stand_in: ModelConnection, rung: list[UUID]
) -> None:
    llm.script([OVERLOADED] * 4)
    other.script([OVERLOADED] * 3 + [Reply("At last.")])
    assert say("Hi").status == RunStatus.RETRY_WAIT
    let_it_come_due()
    sweeper.sweep()
    while rung:
        jobs.run(str(rung.pop(0)))
    assert AgentRun.objects.get().status == RunStatus.SUCCEEDED
    notices = ThreadMessage.objects.filter(thread=goal.thread, content__contains="answers instead")
    assert notices.count() == 1
    assert cells(goal)[-1][2] == "At last."


def test_a_stand_in_whose_key_cannot_be_read_is_none(
    goal: Goal, say: Say, llm: LLMServer, stand_in: ModelConnection
) -> None:
    ModelConnection.objects.filter(pk=stand_in.pk).update(sealed_key="from another server")
    llm.script([BAD_KEY])
    run = say("Hi")
    assert (run.status, run.reason) == (RunStatus.FAILED, "bad_key")


def test_a_model_that_is_known_to_lack_tools_is_not_asked(goal: Goal, say: Say, llm: LLMServer) -> None:
    goal.user.model_connections.update(learned={"tools": False})
    run = say("Hi")
    assert (run.status, run.reason) == (RunStatus.FAILED, "no_tools")
    assert "cannot use tools, which I need" in cells(goal)[-1][2]
    assert llm.requests == []
    goal.user.model_connections.update(corrections={"tools": True})
    llm.script([Reply("Hello.")])
    assert say("And now?").status == RunStatus.SUCCEEDED


def test_a_server_that_refuses_tools_ends_the_run_in_words(goal: Goal, say: Say, llm: LLMServer) -> None:
    """The history is not to blame, so it is neither made plainer nor put in quarantine."""
    llm.script([Status(400, body={"error": {"message": "registry.ollama.ai/library/m does not support tools"}})])
    run = say("Hi")
    assert (run.status, run.reason) == (RunStatus.FAILED, "no_tools")
    assert "cannot use tools, which agents need" in cells(goal)[-1][2]
    assert len(llm.requests) == 1


def test_a_goal_and_its_helpers_keep_to_its_own_model(
    goal: Goal, say: Say, llm: LLMServer, other: LLMServer, rung: list[UUID]
) -> None:
    choose_model(goal, connect(goal.user, other, "local"))
    other.always(Reply("Here."))
    say("Hi")
    task: AgentTask = AgentTaskFactory(parent=goal.thread)
    services.send_message(task.thread, "Look it up.")
    while rung:
        jobs.run(str(rung.pop(0)))
    assert {model for model, _ in models_called()} == {"local"}
    assert llm.requests == []


def test_summaries_are_written_by_the_model_that_is_chosen_for_them(
    goal: Goal, say: Say, llm: LLMServer, other: LLMServer
) -> None:
    small = connect(goal.user, other, "small", tools=False)
    choose_for_uses(assistant_of(goal.user), summariser=small, stand_in=None)
    llm.always(Reply("Hello."))
    other.always(Reply("They said hello."))
    say("Hi")
    archiving.archive_session(goal.thread_id, ArchiveReason.IDLE)
    assert models_called()[-1] == ("small", "done")
    assert len(other.requests) == 1


def test_a_goal_with_a_model_of_its_own_is_summed_up_by_it(goal: Goal, say: Say, llm: LLMServer) -> None:
    """What is kept to one model is kept there for summaries, too."""
    own = connect(goal.user, llm, "own")
    choose_for_uses(assistant_of(goal.user), summariser=connect(goal.user, llm, "small"), stand_in=None)
    choose_model(goal, own)
    llm.always(Reply("Hello."))
    say("Hi")
    archiving.archive_session(goal.thread_id, ArchiveReason.IDLE)
    assert {model for model, _ in models_called()} == {"own"}


@pytest.mark.parametrize(("window", "is_long"), [(None, False), (100_000, False), (1_000, True)])
def test_a_session_is_too_long_when_it_fills_its_models_window(
    goal: Goal, say: Say, llm: LLMServer, monkeypatch: pytest.MonkeyPatch, window: int | None, is_long: bool
) -> None:
    asked: list[object] = []

    def ring(*about: object) -> bool:
        asked.append(about)
        return True

    monkeypatch.setattr(bell, "ring_archive", ring)
    goal.user.model_connections.update(corrections={"context_length": window} if window else {})
    llm.script([Reply("Hello.", usage=(800, 10))])
    say("Hi")
    assert bool(asked) is is_long


def test_prv_10_an_ollama_with_a_short_context_gets_less_instead_of_being_cut(goal: Goal, say: Say) -> None:
    with OllamaServer() as server:
        server.models = {"m": LocalModel(num_ctx=6_000)}
        ModelConnection.objects.filter(user=goal.user).delete()
        connect_model(goal.user, "ollama", Given("m", server.url), Capabilities(context_length=6_000))
        server.always(Reply("Understood.", usage=(100, 5)))
        runs = [say(f"Chapter {number}: {'word ' * 1_000}") for number in range(5)]
        assert {run.status for run in runs} == {RunStatus.SUCCEEDED}
        assert set(server.loaded) == {6_000}
        assert server.violations == []
        assert AgentHistory.objects.filter(thread=goal.thread).exists()
        assert [text for _, _, text in cells(goal)].count("Understood.") == 5
