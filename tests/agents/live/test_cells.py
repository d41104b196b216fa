"""Rows as HTML: safe, in order, and worded by the tools themselves."""

import re
from datetime import timedelta
from html.parser import HTMLParser
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.live.cells import tail_html
from agents.live.screen import Screen, earlier, whole
from agents.live.snapshot import Place
from agents.live.turns import SHOWN
from goals.models import Goal
from memory.models import AgentRun, MessageType, RunStatus, Source, ThreadMessage
from tests.agents.live.looks import say
from tests.factories import (
    AgentActionFactory,
    AgentRunFactory,
    AgentTaskFactory,
    GoalFactory,
    NoteFactory,
    ThreadMessageFactory,
)
from tools.models import ActionStatus

pytestmark = pytest.mark.django_db

HOSTILE = [
    "<img src=x onerror=alert(1)>",
    '<iframe srcdoc="<script>alert(1)</script>">',
    "<svg/onload=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](JaVa&#09;script:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    '<a href=" &#x6a;avascript:alert(1)">x</a>',
    "```<img src=x onerror=alert(1)>\n```",
    "</textarea><script>alert(1)</script>",
    "<form action=//e.example><input name=p>",
    '</template></hx-partial><hx-partial hx-target="body"><b>',
    "<!--live-->",
    '" onmouseover="alert(1)',
    "{{ 7|add:7 }}{% csrf_token %}",
]


@pytest.fixture
def goal() -> Goal:
    return GoalFactory(title="Half marathon")


@pytest.fixture
def run(goal: Goal) -> AgentRun:
    now = timezone.now()
    return AgentRunFactory(thread=goal.thread, started_at=now - timedelta(seconds=41), finished_at=now, cost="0.09")


def ask(run: AgentRun, text: str = "Hello?", **kwargs: Any) -> ThreadMessage:
    return ThreadMessageFactory(thread=run.thread, run=run, content=text, **kwargs)


def answer(run: AgentRun, text: str, **metadata: Any) -> ThreadMessage:
    return ThreadMessageFactory(thread=run.thread, run=run, source=Source.AGENT, content=text, metadata=metadata)


def call(run: AgentRun, **kwargs: Any) -> ThreadMessage:
    action = AgentActionFactory(run=run, **kwargs)
    return ThreadMessageFactory(
        thread=run.thread,
        run=run,
        source=Source.AGENT,
        message_type=MessageType.TOOL,
        content="",
        metadata={"action": str(action.pk)},
    )


def drawn(goal: Goal) -> str:
    return "".join(whole(goal.thread).turns_html)


def everything(screen: Screen) -> str:
    return "".join([*screen.turns_html, screen.bar, screen.queue, screen.panel])


@pytest.mark.parametrize("text", HOSTILE)
def test_REN_02_nothing_that_people_models_or_tools_write_becomes_markup(goal: Goal, run: AgentRun, text: str) -> None:
    ask(run, text)
    answer(run, text, interim=True)
    answer(run, text, thinking=True, interim=True, seconds=1)
    call(run, tool=text[:100], arguments={"title": text}, summary=text)
    call(run, status=ActionStatus.ERROR, error=text, arguments={"title": text})
    answer(run, text)
    answer(run, text, task=str(AgentTaskFactory(parent=goal.thread, title=text[:200]).pk), task_title=text)
    answer(run, text, reason="stopped")
    ThreadMessageFactory(thread=goal.thread, run=run, source=Source.ERROR, content=text, metadata={"retryable": True})
    NoteFactory(thread=goal.thread, title=text[:200])
    live = AgentRunFactory(thread=goal.thread, status=RunStatus.RUNNING)
    ask(live, text, processed=False)
    say(goal.thread_id, text, run=live.pk)
    goal.title = text[:120]
    goal.save()
    page = Markup()
    page.feed(everything(whole(goal.thread)))
    page.close()
    assert page.tags.isdisjoint({"script", "iframe", "img", "form", "template", "hx-partial", "object", "embed"})
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    links = [
        value or "" for name, value in page.attributes if name in ("href", "src", "formaction", "hx-get", "hx-post")
    ]
    assert all(re.match(r"/|https?://|mailto:|#", link) for link in links)
    assert text.split()[0] in page.text


class Markup(HTMLParser):
    """Collects what a browser would make of a piece of HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_a_person_writes_is_shown_as_written(goal: Goal, run: AgentRun) -> None:
    ask(run, "Use `<local-chat>` and a < b > c.\nSecond **line**")
    assert "Use `&lt;local-chat&gt;` and a &lt; b &gt; c.<br>Second **line**" in drawn(goal)


def test_a_turn_shows_what_was_asked_then_the_trail_then_the_answer(goal: Goal, run: AgentRun) -> None:
    question = ask(run, "Find my notes")
    cell = call(run, tool="search_notes", summary="“shoes”, 2 found")
    reply = answer(run, "Here they **are**.")
    html = drawn(goal)
    places = [
        html.index(f'id="turn-{question.pk}"'),
        html.index(f'id="step-{cell.pk}"'),
        html.index(f'id="m{reply.pk}"'),
    ]
    assert places == sorted(places)
    assert "Searched your notes" in html
    assert "“shoes”, 2 found" in html
    assert "<strong>are</strong>" in html
    assert "1 step · 41 s · $0.09" in html


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        (ActionStatus.STARTED, "running", "Creating a note"),
        (ActionStatus.DONE, "done", "Created a note"),
        (ActionStatus.ERROR, "failed", "Could not create a note"),
        (ActionStatus.UNKNOWN, "waiting", "Not known whether it happened:"),
        (ActionStatus.CANCELLED, "quiet", "Left undone"),
    ],
)
def test_a_tool_cell_says_how_the_call_stands(goal: Goal, run: AgentRun, status: str, state: str, words: str) -> None:
    ask(run)
    cell = call(run, status=status, arguments={"title": "Shoes", "body": "Buy"}, error="Too long")
    html = drawn(goal)
    assert f'id="step-{cell.pk}" data-state="{state}"' in html
    assert words in html


def test_a_tool_that_is_gone_still_has_a_cell(goal: Goal, run: AgentRun) -> None:
    ask(run)
    call(run, tool="long_gone", arguments={"x": 1})
    assert "Used long_gone" in drawn(goal)


def test_more_than_six_finished_steps_fold_into_one_line(goal: Goal, run: AgentRun) -> None:
    ask(run)
    cells = [call(run) for _ in range(7)]
    html = drawn(goal)
    assert "5 steps done" in html
    assert all(f"step-{cell.pk}" in html for cell in cells)
    cells.append(call(run, status=ActionStatus.STARTED))
    assert "5 steps done" in drawn(goal), "what is running does not count"


def test_the_beginning_of_a_helpers_report_is_seen_at_once_and_never_folded(goal: Goal, run: AgentRun) -> None:
    report = {"task": str(AgentTaskFactory(parent=goal.thread).pk), "task_title": "Shoes"}
    text = "# Shoes\n\nThree **pairs** fit.\n\n- One is wide.\n\n" + "And so on. " * 100
    ThreadMessageFactory(thread=goal.thread, content=text, source=Source.AGENT, run=run, metadata=report)
    for number in range(8):
        words, beside = f"Thought {number}", {"interim": True}
        ThreadMessageFactory(thread=goal.thread, content=words, source=Source.AGENT, run=run, metadata=beside)
    html = str(whole(goal.thread).turns_html)
    (first,) = re.findall(r'<p class="cell-first" dir="auto">(.*?)</p>', html)
    assert first.startswith("Three pairs fit. One is wide. And so on.")
    assert len(first) <= 280
    assert "A helper reported" not in html.partition('<ol class="trail">')[2].partition("</ol>")[0]
    assert "6 steps done" in html


def test_messages_that_wait_for_a_busy_run_stand_in_the_queue_and_not_in_the_thread(goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.RUNNING)
    ask(run, "First")
    ask(run, "Also check the insoles", processed=False)
    screen = whole(goal.thread)
    assert "Also check the insoles" in screen.queue
    assert len(screen.drawn) == 1


def test_a_message_that_waits_for_the_next_run_does_not_cut_the_answer_off(goal: Goal, run: AgentRun) -> None:
    ask(run, "First")
    ask(run, "Second", processed=False)
    answer(run, "To the first")
    goal.thread.live_run = AgentRunFactory(thread=goal.thread, status=RunStatus.QUEUED).pk
    goal.thread.save()
    screen = whole(goal.thread)
    assert len(screen.drawn) == 1
    assert "To the first" in screen.drawn[0].html
    assert "Second" in screen.queue


def test_a_message_that_no_run_has_taken_up_yet_is_a_turn_already(goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.QUEUED)
    ask(run, "First", processed=False)
    screen = whole(goal.thread)
    assert "First" in screen.drawn[0].html
    assert "hidden" in screen.queue
    assert "Waiting for a worker" in screen.bar


def test_text_on_its_way_stands_in_the_last_turn_of_the_live_run_only(goal: Goal, run: AgentRun) -> None:
    ask(run)
    answer(run, "Old")
    live = AgentRunFactory(thread=goal.thread, status=RunStatus.RUNNING, started_at=timezone.now())
    ask(live, "New?")
    say(goal.thread_id, "Being **writ", run=live.pk)
    first, second = whole(goal.thread).turns_html
    assert "aria-busy" not in first
    assert "Being" in second
    assert f'id="say-{live.pk}"' in second
    AgentRun.objects.filter(pk=live.pk).update(status=RunStatus.FAILED)
    assert "Being" not in drawn(goal)


def test_an_error_at_the_end_of_a_turn_can_be_tried_again_and_one_before_it_cannot(goal: Goal, run: AgentRun) -> None:
    ask(run)
    old, new = (
        ThreadMessageFactory(
            thread=goal.thread, run=run, source=Source.ERROR, content="Down", metadata={"retryable": True}
        )
        for _ in range(2)
    )
    html = drawn(goal)
    assert f"/messages/{new.pk}/retry" in html
    assert f"/messages/{old.pk}/retry" not in html
    AgentRunFactory(thread=goal.thread, status=RunStatus.QUEUED)
    assert "/retry" not in drawn(goal), "it is being tried again"


def test_a_run_that_was_stopped_before_it_began_says_so(goal: Goal) -> None:
    run = AgentRunFactory(thread=goal.thread, status=RunStatus.CANCELLED)
    ask(run, processed=False)
    assert "Stopped by you before it began." in drawn(goal)


def test_each_day_is_named_once(goal: Goal, run: AgentRun) -> None:
    for days in (1, 1, 0, 0):
        ask(run, created_at=timezone.now() - timedelta(days=days))
    html = drawn(goal)
    assert html.count('class="day"') == 2
    assert html.index("Yesterday, ") < html.index("Today, ")


def test_a_long_conversation_comes_in_pages_without_gap_or_overlap(goal: Goal, run: AgentRun) -> None:
    asked = [ask(run, f"Question {number}").pk for number in range(SHOWN * 2 + 5)]
    screen = whole(goal.thread)
    shown = [each.id for each in screen.drawn]
    while screen.older:
        screen = earlier(goal.thread, screen.older)
        shown = [each.id for each in screen.drawn] + shown
    assert shown == asked


def test_the_number_of_queries_does_not_grow_with_the_conversation(goal: Goal) -> None:
    def count(turns: int) -> int:
        for _ in range(turns):
            run = AgentRunFactory(thread=goal.thread)
            ask(run)
            call(run)
            call(run)
            answer(run, "Done")
            AgentTaskFactory(parent=goal.thread)
            NoteFactory(thread=goal.thread)
        with CaptureQueriesContext(
            connection,
        ) as queries:
            whole(goal.thread)
        return len(queries)

    assert count(1) == count(8)


def test_the_caret_stands_behind_the_last_character() -> None:
    assert (
        tail_html("<p>One <strong>two</strong></p>\n") == '<p>One <strong>two<span class="caret"></span></strong></p>\n'
    )
    assert tail_html("<p>One</p>") == '<p>One<span class="caret"></span></p>'
    assert tail_html("") == '<span class="caret"></span>'


def test_without_redis_the_thread_can_still_be_read(goal: Goal, run: AgentRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.live.screen.place", lambda thread_id: Place("", None))
    ask(run, "Hello?")
    assert "Hello?" in drawn(goal)
