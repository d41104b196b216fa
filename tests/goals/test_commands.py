"""manage.py token and manage.py chat."""

import io
import threading
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import Client

from agents import terminal
from agents.engine import bell, jobs
from agents.live.stream import redis_client
from agents.services import assistant_of
from goals.models import Goal
from memory.models import AgentRun, Note, RunStatus, ThreadMessage
from tests.factories import DeviceTokenFactory, GoalFactory, UserFactory, think_with
from tests.llm_server import LLMServer, Reply


@pytest.fixture
def user(transactional_db: None) -> User:
    redis_client().flushdb()
    return UserFactory.create()


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Runs are worked on in a thread of this process as soon as the doorbell rings."""
    at_work: list[threading.Thread] = []

    def work(run_id: UUID) -> None:
        try:
            jobs.run(str(run_id))
        finally:
            connections.close_all()

    def ring(run_id: UUID) -> None:
        at_work.append(threading.Thread(target=work, args=[run_id]))
        at_work[-1].start()

    monkeypatch.setattr(bell, "ring", ring)
    yield
    for thread in at_work:
        thread.join(10)


class Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set what the person types, line by line; then the input ends."""

    def types(*lines: str) -> None:
        waiting = list(lines)

        def typed(prompt: str = "") -> str:
            if not waiting:
                raise EOFError
            return waiting.pop(0)

        monkeypatch.setattr("builtins.input", typed)
        monkeypatch.setattr("sys.stdin", Keyboard())

    return types


def chat(user: User, *options: str) -> str:
    out = io.StringIO()
    call_command("chat", user.email, *options, stdout=out, stderr=out)
    return out.getvalue()


def test_a_token_is_printed_once_and_opens_the_api(user: User, client: Client) -> None:
    out = io.StringIO()
    call_command("token", user.email.upper(), "--name", "Laptop", stdout=out)
    token = out.getvalue().strip()
    assert client.get("/api/v1/goals", headers={"Authorization": f"Bearer {token}"}).status_code == 200
    assert user.devices.get().name == "Laptop"


def test_a_token_needs_an_active_user(user: User) -> None:
    User.objects.update(is_active=False)
    for email in (user.email, "nobody@example.org"):
        with pytest.raises(CommandError):
            call_command("token", email)
    assert DeviceTokenFactory._meta.model.objects.count() == 0


def test_a_conversation_in_the_terminal(user: User, worked: None, types: Callable[..., None], settings: object) -> None:
    types("Create a note about shoes", "Hello")
    goal: Goal = GoalFactory.create(user=user, title="Half marathon")
    shown = chat(user, "--goal", str(goal.pk))
    assert shown.startswith("Half marathon.")
    assert "· Creating a note …" in shown
    assert "✓ Created a note" in shown
    assert shown.count("(finished, ") == 2
    assert Note.objects.filter(thread=goal.thread).exists()
    for answer in ThreadMessage.objects.filter(thread=goal.thread, source="agent", message_type="text"):
        assert shown.count(answer.content) == 1


MARKDOWN = """# Shoes

Three **pairs** of `size 42` [fit](https://shoes.example).

1. Wide \x1b[2Jones
   - grey

> Walk first.

```py
print("**as it is**")
```

| a | b |
|---|---|
| 1 | 2 |
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_markdown_drawn_and_obeys_nothing_of_it(
    user: User, llm: LLMServer, worked: None, types: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    think_with(user, llm.url, "key-of-the-test")
    llm.script([Reply(text=MARKDOWN), Reply(text=MARKDOWN)])
    types("Hello")
    out = Terminal()
    call_command("chat", user.email, stdout=out, stderr=out)
    shown = out.getvalue()
    assert "\x1b[1mShoes\x1b[22m\n\nThree \x1b[1mpairs\x1b[22m of \x1b[36msize 42\x1b[39m fit (https:" in shown
    assert "\n1. Wide [2Jones\n   • grey\n\n│ Walk first.\n" in shown
    assert '\n  \x1b[36mprint("**as it is**")\x1b[39m\n\na │ b\n1 │ 2\n' in shown
    assert ("\x1b[2J" in shown, shown.count("Shoes")) == (False, 1)
    types("Hello")
    assert "Three **pairs** of `size 42`" in chat(user), "what is no terminal gets no signs"


def test_a_question_is_answered_by_its_number(
    user: User, llm: LLMServer, worked: None, types: Callable[..., None]
) -> None:
    think_with(user, llm.url, "key-of-the-test")
    question = ("ask_user", {"question": "Which race?", "answers": ["Graz", "Linz"]})
    llm.script([Reply(calls=[question]), Reply("In Linz."), Reply("Two what?")])
    types("Sign me up", "2", "2")
    shown = chat(user)
    assert "Which race?\n  1) Graz\n  2) Linz\n" in shown
    said = ThreadMessage.objects.filter(source="user").order_by("position").values_list("content", flat=True)
    assert list(said) == ["Sign me up", "Linz", "2"]


def test_without_a_goal_it_is_the_assistant(user: User, worked: None, types: Callable[..., None]) -> None:
    types("Hello")
    assert "(finished, " in chat(user)
    assert AgentRun.objects.get().thread == assistant_of(user).thread


def test_goals_of_others_cannot_be_talked_to(user: User) -> None:
    with pytest.raises(CommandError):
        chat(user, "--goal", str(GoalFactory().pk))


def test_chat_finds_a_goal_by_how_its_title_begins(user: User, types: Callable[..., None]) -> None:
    types("")
    for title in ("Run a marathon", "Run", "Move house", "Move on"):
        GoalFactory(user=user, title=title)
    assert chat(user, "--goal", "run").startswith("Run. ")
    assert chat(user, "--goal", "RUN A").startswith("Run a marathon. ")
    with pytest.raises(CommandError, match="Several goals are called so: Move"):
        chat(user, "--goal", "move")
    with pytest.raises(CommandError, match="has no goal sail"):
        chat(user, "--goal", "sail")
    GoalFactory(user=user, title="Sail\x1b]0;root\x07 away")
    assert chat(user, "--goal", "sail").startswith("Sail]0;root away. "), "nor does a title tell a terminal what to do"


def test_what_is_refused_is_said_and_the_talk_goes_on(user: User, types: Callable[..., None]) -> None:
    types("x" * 100_001)
    assert "at most 100,000" in chat(user)


def test_the_first_interrupt_stops_the_run_and_the_second_leaves(
    user: User, types: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    unheard = iter([True])  # nobody hears the first ring; the stop rings again, and a worker ends the run

    def ring(run_id: UUID) -> None:
        if not next(unheard, False):
            jobs.run(str(run_id))

    monkeypatch.setattr(bell, "ring", ring)
    types("Hello")
    interrupts = iter([KeyboardInterrupt])
    original = terminal.Conversation._live

    def live(self: terminal.Conversation) -> Iterator[object]:
        for interrupt in interrupts:
            raise interrupt
        return original(self)

    monkeypatch.setattr(terminal.Conversation, "_live", live)
    assert "(stopped, " in chat(user)
    assert AgentRun.objects.get().status == RunStatus.CANCELLED


def test_what_comes_through_a_pipe_is_one_message(user: User, worked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("# Report\n\nOne.\n\nTwo.\n"))
    shown = chat(user)
    assert ThreadMessage.objects.get(source="user").content == "# Report\n\nOne.\n\nTwo."
    assert (shown.count("(finished, "), ">" in shown) == (1, False)
    monkeypatch.setattr("sys.stdin", io.StringIO("  \n"))
    with pytest.raises(CommandError, match="Write something first"):
        chat(user)


def test_without_redis_the_answer_comes_from_the_database(
    user: User, worked: None, types: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.terminal.tip", lambda thread_id: "")
    monkeypatch.setattr("agents.terminal.BLOCK_MS", 10)
    types("Hello")
    shown = chat(user)
    answer = ThreadMessage.objects.get(source="agent")
    assert answer.content in shown
    assert "(finished, " in shown
