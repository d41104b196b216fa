"""The demonstration, seen as the engine sees it: messages and tools in, chunks out."""

import time
from decimal import Decimal

import pytest

from agents.providers.base import Endpoint, Finish, ModelRequest, Reply
from agents.providers.catalog import connect
from agents.providers.demo import DemoProvider
from agents.providers.demo_mind import INTRODUCTION
from agents.providers.pricing import Prices
from memory.messages import Message, Thinking, ToolResult, ToolUse, assistant, tool, user
from tests.agents.providers.conftest import Heard
from tools.base import ToolSpec
from tools.cancel import Cancelled, CancelToken

ALL = (
    "create_note",
    "search_notes",
    "list_notes",
    "list_recent_actions",
    "undo_action",
    "manage_learning",
    "create_task",
    "send_message",
)


def _ask(*messages: Message, tools: tuple[str, ...] = ALL, system: str = "") -> Heard:
    offered = [ToolSpec(name, "", {"type": "object"}) for name in tools]
    provider = DemoProvider(Endpoint("demo"), delay=0)
    return Heard(list(provider.stream(ModelRequest("demo", system, messages, offered), CancelToken())))


def _call(words: str, **rest: object) -> ToolUse:
    heard = _ask(user(words), **rest)  # type: ignore[arg-type]
    assert heard.reply.finish is Finish.TOOL_CALLS
    assert heard.thinking, "a thought is shown before a call"
    assert isinstance(heard.message.blocks[0], Thinking)
    (call,) = heard.message.calls
    return call


def _answer(words: str, call: ToolUse, content: str = "Done.", *, is_error: bool = False) -> str:
    return _ask(
        user(words), assistant("", [call]), tool(ToolResult(id=call.id, content=content, is_error=is_error))
    ).text


def test_the_main_job_writes_a_useful_note_and_says_so() -> None:
    words = "Create a note about what I need for a half marathon in May"
    call = _call(words)
    assert (call.name, call.arguments["title"]) == ("create_note", "Half marathon in May: what I need")
    body = str(call.arguments["body"])
    assert "## Gear" in body
    assert "shoes" in body
    assert body.count("- [ ] ") > 10
    answer = _answer(words, call)
    assert "Half marathon in May: what I need" in answer
    assert answer.endswith(INTRODUCTION)


def test_undo_takes_back_the_newest_that_can_be_and_was_no_undo_itself() -> None:
    listing, known = _call("Undo that, please"), "0193a4b2-0000-7000-8000-00000000000"
    lines = (
        ("Undid Created a note Tent", "can be undone"),
        ("Created a note Tent", "undone"),
        ("Created a note Shoes (id 12)", "can be undone"),
        ("Created a note Socks", "can be undone"),
    )
    listed = "\n".join(
        f"- {said} (id {known}{at}, 2026-11-28 10:00 UTC, {state})" for at, (said, state) in enumerate(lines)
    )
    seen = [user("Undo that, please"), assistant("", [listing]), tool(ToolResult(id=listing.id, content=listed))]

    (call,) = _ask(*seen).message.calls

    assert (listing.name, call.name, call.arguments) == ("list_recent_actions", "undo_action", {"id": f"{known}2"})
    back = assistant("", [call])
    assert "as it was before" in _ask(*seen, back, tool(ToolResult(id=call.id, content="It was undone."))).text
    assert "nothing of mine" in _answer("undo", listing, "Nothing was done yet.")


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("create a note on the move to Lisbon", "Move to Lisbon"),
        ("Please write a short note about our job interview at Acme.", "Job interview at Acme"),
        ("Hi! Can you make me a checklist for a birthday party?", "Birthday party"),
        ("WRITE A NOTE ABOUT everything I need to learn Portuguese", "Learn Portuguese: what I need"),
        ("Create a note about how to remember names", "How to remember names"),
        ("write down: call the dentist on Monday", "Call the dentist on Monday"),
        ("Note that the shop closes at six", "The shop closes at six"),
        ("Save this: code is 1234", "Code is 1234"),
        ("Make a packing list for Iceland", "Packing list for Iceland"),
        ("I'd like a note about gardening", "Gardening"),
        ("On Friday, remind me to water the plants", "Reminder: water the plants"),
    ],
)
def test_notes_are_written_from_plain_wording(words: str, title: str) -> None:
    call = _call(words)
    assert (call.name, call.arguments["title"]) == ("create_note", title)
    assert str(call.arguments["body"]).strip()


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ("Search my notes for marathon", "marathon"),
        ("find notes about the dentist", "dentist"),
        ("Find Lisbon in my notes", "Lisbon"),
        ("Show me my notes about trains", "trains"),
        ("What do you know about Ana?", "Ana"),
        ("Do I have a note about shoes?", "shoes"),
        ("look up the opening hours", "opening hours"),
        ("Search notes: marathon", "marathon"),
        ("What are my notes about trains?", "trains"),
    ],
)
def test_notes_are_searched_from_plain_wording(words: str, query: str) -> None:
    call = _call(words)
    assert (call.name, call.arguments) == ("search_notes", {"query": query})
    assert "1. Something" in _answer(words, call, "1. Something")


@pytest.mark.parametrize("words", ["List my notes", "show all notes", "What notes do I have?", "What's in my notes?"])
def test_notes_are_listed(words: str) -> None:
    assert (_call(words).name, _call(words).arguments) == ("list_notes", {})


@pytest.mark.parametrize(
    "words", ["Look into good places to camp in the background", "Can you research good places to camp?"]
)
def test_research_becomes_a_task(words: str) -> None:
    call = _call(words)
    assert (call.name, call.arguments["title"]) == ("create_task", "Look into good places to camp")
    assert "good places to camp" in str(call.arguments["instructions"])
    assert "background" in _answer(words, call)


def test_a_reminder_promises_nothing() -> None:
    words = "Remind me to call Ana"
    answer = _answer(words, _call(words))
    assert "Reminder: call Ana" in answer
    assert "nothing will ring" in answer


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("Delete the last note", "open **Notes**"),
        ("Help", "Create a note"),
        ("What can you do?", "Create a note"),
        ("Hello there", "Hello!"),
        ("thanks a lot", "welcome"),
        ("create a note", "about?"),
        ("flibber the gibbet", "did not understand"),
    ],
)
def test_words_are_answered_without_tools(words: str, part: str) -> None:
    heard = _ask(user(words))
    assert part in heard.text
    assert heard.reply.finish is Finish.STOP
    assert heard.text.endswith(INTRODUCTION)


def test_only_the_first_answer_introduces_itself() -> None:
    assert INTRODUCTION not in _ask(user("hello"), assistant("Hello!"), user("thanks")).text


def test_a_tool_that_is_not_offered_is_not_used_and_that_is_said() -> None:
    heard = _ask(user("Look into camping"), tools=("create_note", "send_message"))
    assert not heard.message.calls
    assert "create_task" in heard.text


def test_an_error_of_a_tool_is_reported() -> None:
    words = "Create a note about shoes"
    answer = _answer(words, _call(words), "The title is too long.", is_error=True)
    assert "did not work" in answer
    assert "The title is too long." in answer


def test_sections_of_the_prompt_beside_the_words_are_not_taken_for_words() -> None:
    call = _call("<time>Friday, remember the milk</time>\nCreate a note about shoes\n<notes>undo</notes>")
    assert call.arguments["title"] == "Shoes"


@pytest.mark.parametrize(
    ("system", "tools"),
    [("<role>\nYou are a sub-agent. You work alone.\n</role>", ALL), ("", ("search_notes", "create_note"))],
    ids=["by its role", "by its tools"],
)
def test_a_background_task_looks_at_the_notes_and_writes_a_report(system: str, tools: tuple[str, ...]) -> None:
    words = "Look into good places to camp. Search the notes first."
    call = _call(words, system=system, tools=tools)
    assert (call.name, call.arguments) == ("search_notes", {"query": "good places to camp"})
    result = tool(ToolResult(id=call.id, content="1. Camping by the lake"))
    report = _ask(user(words), assistant("", [call]), result, system=system, tools=tools).text
    assert report.startswith("# Report: Good places to camp")
    assert "Camping by the lake" in report


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("remember that I prefer morning trains", "I prefer morning trains"),
        ("Please don't forget: Ana is allergic to nuts!", "Ana is allergic to nuts"),
    ],
)
def test_what_is_to_be_remembered_is_kept_in_mind(words: str, text: str) -> None:
    call = _call(words)
    assert (call.name, call.arguments) == ("manage_learning", {"text": text})
    assert "stands under **Memory**" in _answer(words, call)


def test_the_report_of_a_background_task_is_passed_on() -> None:
    report = "<time>Friday</time>\n<task_report># Report: Good places to camp\n\nUndo nothing.</task_report>"
    assert "**Good places to camp**" in _ask(user("hi"), assistant("Hello!"), user(report)).text


def test_a_goal_about_working_alone_makes_no_background_task() -> None:
    system = "<role>\nYou are responsible for one goal.\n<goal><title>Learn to work alone</title></goal>\n</role>"
    assert _call("Create a note about shoes", system=system).name == "create_note"


def test_the_same_request_gets_the_same_answer_and_ids_stay_unique() -> None:
    first, again = _call("List my notes"), _call("List my notes")
    assert first == again
    done = (
        user("list notes"),
        assistant("", [first]),
        tool(ToolResult(id=first.id, content="none")),
        assistant("None."),
    )
    (later,) = _ask(*done, user("list notes")).message.calls
    assert later.id != first.id


def test_words_come_one_by_one_and_can_be_stopped() -> None:
    cancel = CancelToken()
    stream = DemoProvider(Endpoint("demo"), delay=0.01).stream(ModelRequest("demo", "", [user("help")]), cancel)
    started = time.monotonic()
    assert not isinstance(next(stream), Reply)
    assert not isinstance(next(stream), Reply)
    assert time.monotonic() - started >= 0.02
    cancel.cancel("enough")
    with pytest.raises(Cancelled):
        list(stream)


def test_tokens_are_estimated_and_cost_nothing() -> None:
    usage = _ask(user("help")).reply.usage
    assert usage.input_tokens
    assert usage.output_tokens
    assert Prices().cost(Endpoint("demo"), "demo", usage) == Decimal(0)


def test_it_is_connected_like_any_other() -> None:
    assert isinstance(connect(Endpoint("demo")), DemoProvider)


@pytest.mark.parametrize("words", ["<a>" * 33_000, "<a" * 50_000, "<task_report>" * 7_500])
def test_words_that_look_like_tags_without_end_are_answered_soon(words: str) -> None:
    began = time.process_time()
    assert _ask(user(words)).text
    assert time.process_time() - began < 3


def test_the_assistant_says_how_the_goals_stand_of_which_it_was_told() -> None:
    words = "Look across my goals: what should I do next?"
    told = user(f"<goals>\n- Run &amp; jump: waits for the user's word\n</goals>\n\n{words}")
    tools = (*ALL, "read_goal")
    assert "- Run & jump: waits for the user's word" in _ask(told, tools=tools).text
    later = (told, assistant("Well."), user(words))
    assert "- Run & jump: waits" in _ask(*later, tools=tools).text
    assert "no goals yet" in _ask(user(words), tools=tools).text
