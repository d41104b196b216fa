"""How the demonstration goes on: from the messages and the tools offered to one next step. Deterministic."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.sax.saxutils import unescape

from agents.providers.base import ModelRequest
from agents.providers.demo_feed import feed_step, inside
from agents.providers.demo_rules import Call, Say, Step, capital, first_step, subject_of
from agents.providers.demo_topics import sections_for
from memory.messages import Message, ToolResult, ToolUse
from memory.text import clip

INTRODUCTION = (
    "This is a demonstration: my answers are scripted, there is no language model behind them. "
    "Connect a real model under **Settings → Models and keys** and I can do much more."
)
_NO_TOOL = "I cannot do that here: the tool for it, `{tool}`, is not offered to me."
# Of the user's words, in characters: the script understands sentences, and looking for tags takes a time that grows
# with the square of the text.
_READ = 4_000
_SECTION = re.compile(r"<(\w+)\b[^>]*>.*?</\1>", re.S)
_TAG = re.compile(r"</?\w+\b[^>]*>")
_ROLE = re.compile(r"<role>([^<]*)", re.I)  # up to the first tag: what follows holds the user's words
_ALONE = re.compile(r"sub-agent|task agent|work alone", re.I)
_UNDOABLE = re.compile(r"^- (.+) \(id ([0-9a-f-]+), [^()]*, can be undone\)$", re.M)
_ID = re.compile(r" \(id [0-9a-f-]+\)")
_OF_GOALS = re.compile(r"\bmy goals\b", re.I)
_ORDER = re.compile(r"^(?:please )?(?:look into|research|investigate|find out(?: about)?)\s+", re.I)


class Turn(NamedTuple):
    """What happened since the last words to the agent: the user's words, or the report of a background task, and the
    calls with their results so far. raw: all that was said, with the sections beside the words."""

    raw: str
    text: str
    report: str
    done: tuple[tuple[ToolUse, ToolResult], ...]


def decide(request: ModelRequest) -> Step:
    """Return the next step. A conversation's first answer says that this is a demonstration."""
    offered = frozenset(tool.name for tool in request.tools)
    turn = _turn(request.messages)
    if "write_feed" in offered and (of_feed := feed_step(turn.raw, written=bool(turn.done))):
        return of_feed
    if "read_goal" in offered and not turn.done and _OF_GOALS.search(turn.text):
        step: Step = Say(_goals_report(request.messages))
    else:
        step = _work_alone(turn, offered) if _is_alone(request.system, offered) else _converse(turn)
    if isinstance(step, Call) and step.tool not in offered:
        step = Say(_NO_TOOL.format(tool=step.tool))
    if isinstance(step, Say) and not _has_spoken(request.messages):
        return Say(f"{step.text}\n\n{INTRODUCTION}")
    return step


def _turn(messages: Sequence[Message]) -> Turn:
    start = max((at for at, message in enumerate(messages) if message.role == "user"), default=0)
    current = messages[start:]
    calls = {call.id: call for message in current for call in message.calls}
    results = (block for message in current for block in message.blocks if isinstance(block, ToolResult))
    done = tuple((calls[result.id], result) for result in results if result.id in calls)
    said, words = (current[0].text, current[0].words) if current else ("", "")
    return Turn(said, _bare(words[:_READ]), unescape(inside("task_report", said).strip()), done)


def _bare(text: str) -> str:
    """The user's words without the sections that a prompt may put beside them."""
    outside = _SECTION.sub("", text).strip()
    return " ".join((outside or _TAG.sub(" ", text)).split())


def _has_spoken(messages: Sequence[Message]) -> bool:
    return any(message.role == "assistant" and message.text.strip() for message in messages)


def _is_alone(system: str, offered: frozenset[str]) -> bool:
    """Whether this is a background task: its role says so, or there is nobody to talk to and nothing to delegate."""
    if role := _ROLE.search(system):
        return bool(_ALONE.search(role[1]))
    return bool(offered) and offered.isdisjoint({"send_message", "create_task"})


def _converse(turn: Turn) -> Step:
    if turn.report:
        headline = clip(turn.report.partition("\n")[0].strip("# ").removeprefix("Report: "), 120)
        return Say(f"The task in the background is done. It sent this report: **{headline}**.")
    if not turn.done:
        return first_step(turn.text)
    call, result = turn.done[-1]
    return _take_back(result) if call.name == "list_recent_actions" else Say(_report(call, result))


def _goals_report(messages: Sequence[Message]) -> str:
    """The goals, as the assistant was told of them last."""
    told = next(filter(None, (unescape(inside("goals", message.text)).strip() for message in reversed(messages))), "")
    if not told.startswith("- "):
        return "You have no goals yet. Make one under **New goal**, and it gets an agent of its own."
    return f"This is how your goals stand:\n\n{told}\n\nWhich of them comes next, a script cannot judge."


def _take_back(listed: ToolResult) -> Step:
    """The newest of what was done, but for what was taken back itself."""
    found = next((line for line in _UNDOABLE.finditer(listed.content) if not line[1].startswith("Undid ")), None)
    if found is None:
        return Say("There is nothing of mine that could be undone. I have changed nothing.")
    return Call(f"The last of it was: {found[1]}.", "undo_action", {"id": found[2]})


def _report(call: ToolUse, result: ToolResult) -> str:
    """Answer in words what came of a call."""
    if result.is_error:
        return f"That did not work. The tool `{call.name}` answered: {clip(result.content, 400)}"
    reporter = _REPORTS.get(call.name)
    return reporter(call, result.content.strip()) if reporter else result.content.strip()


def _note_report(call: ToolUse, _: str) -> str:
    title = str(call.arguments.get("title"))
    if title.startswith("Reminder: "):
        return (
            f"I wrote it down as **{title}**. To be open about it: I only follow a script, so nothing will ring. Under "
            "**Schedule**, beside the goal, you can set a time yourself."
        )
    headings = re.findall(r"^## (.+)$", str(call.arguments.get("body")), re.M)
    about = f" It covers: {', '.join(headings).lower()}." if headings else ""
    return f"Done. I wrote the note **{title}**.{about} You can open, change or delete it under Notes."


def _learning_report(call: ToolUse, _: str) -> str:
    text = str(call.arguments.get("text")).rstrip(".")
    return f"I keep in mind: **{text}**. It stands under **Memory**, beside the goal, with where it is from."


def _search_report(call: ToolUse, found: str) -> str:
    return f"This is what your notes say about “{call.arguments.get('query')}”:\n\n{_ID.sub('', found)}"


def _list_report(_: ToolUse, found: str) -> str:
    return f"These are your notes:\n\n{_ID.sub('', found)}"


def _undo_report(_: ToolUse, __: str) -> str:
    return "Done: it is as it was before. Say so if I shall do it again; there is a button for it, too."


def _task_report(call: ToolUse, _: str) -> str:
    title = call.arguments.get("title")
    return f"I started a task in the background: **{title}**. It reports when it is done; you can go on meanwhile."


_REPORTS: dict[str, Callable[[ToolUse, str], str]] = {
    "create_note": _note_report,
    "manage_learning": _learning_report,
    "search_notes": _search_report,
    "list_notes": _list_report,
    "create_task": _task_report,
    "undo_action": _undo_report,
}


def _work_alone(turn: Turn, offered: frozenset[str]) -> Step:
    """A background task: look at the notes, then write the report."""
    subject = subject_of(_ORDER.sub("", turn.text).partition(". ")[0])
    if "search_notes" in offered and not turn.done:
        return Call("First I look at what the notes already say.", "search_notes", {"query": clip(subject, 80)})
    return Say(_written_report(subject, turn.done[-1][1] if turn.done else None))


def _written_report(subject: str, notes: ToolResult | None) -> str:
    found = "I had no way to look at the notes."
    if notes:
        found = f"The search failed: {clip(notes.content, 300)}" if notes.is_error else notes.content.strip()
    steps = [f"{number}. **{name}**: {items[0]}" for number, (name, items) in enumerate(sections_for(subject), 1)]
    return (
        f"# Report: {capital(clip(subject, 80))}\n\n"
        f"## What your notes say\n\n{found}\n\n"
        "## How I would go about it\n\n" + "\n".join(steps) + "\n\n"
        "I looked at nothing outside your notes: a demonstration has no way to the internet."
    )
