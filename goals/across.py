"""What the assistant knows of all that its user pursues, and what it finds where it looks closer (missions A4, E3)."""

from collections.abc import Collection, Iterator, Mapping
from typing import Final
from uuid import UUID
from xml.sax.saxutils import escape

from django.contrib.auth.models import User
from django.db.models import F, OuterRef, Subquery

from agents.budgets.counting import zone_of
from agents.live.cards import target as target_of
from agents.live.steps import intention
from agents.planned import to_remind_of
from goals.context import asked_by_agent, goals_with_state
from goals.figures import exact
from goals.measured import Measurement, Target
from goals.models import Goal
from goals.owners import with_actions
from goals.schedule import Schedule
from memory.context import NOTES_LISTED, learned, noted
from memory.document import MEMORY
from memory.marks import merged
from memory.models import Document, Learning, Note, RunStatus, Source, ThreadMessage
from memory.text import clip
from tools.models import Approval, agent_of

LISTED: Final = 40
"""Goals in the context: those that their user wrote to last."""
MESSAGES, MESSAGE = 12, 800
"""The last of a conversation, and characters of each."""
REMEMBERED: Final = 4_000
"""Characters of a long-term memory."""


def told(user: User) -> str:
    """A line for each goal: when its user last wrote there, how it is measured, and what is in its way."""
    goals = list(goals_with_state(user)[: LISTED + 1])
    stand, asked, zone = _measured(goals), asked_by_agent(user), zone_of(user.pk)
    lines = []
    for goal in goals[:LISTED]:
        facts = [f"the user last wrote on {goal.thread.active_at.astimezone(zone):%Y-%m-%d}", *stand[goal.thread_id]]
        if n := asked[goal.thread_id]:
            facts.append(f"waits for the user's word {n} times" if n > 1 else "waits for the user's word")
        if getattr(goal, "last_status", None) == RunStatus.FAILED:
            facts.append("its last run failed")
        lines.append(f"- {goal.title}: {'; '.join(facts)}")
    more = ["- and more, which search_everything finds"] if len(goals) > LISTED else []
    return escape("\n".join([*lines, *more]))


def _measured(goals: Collection[Goal]) -> Mapping[UUID, list[str]]:
    """By thread, what is to be reached and where it stands."""
    newest = Measurement.objects.filter(thread=OuterRef("thread")).order_by("-day", "-created_at").values("value")[:1]
    found: dict[UUID, list[str]] = {goal.thread_id: [] for goal in goals}
    for target in Target.objects.filter(thread__in=found).annotate(last=Subquery(newest)):
        stands = f"now {exact(target.last)}" if target.last is not None else "nothing measured"
        found[target.thread_id] = [f"{target} by {target.deadline.isoformat()}, {stands}"]
    return found


def goals_named(user_id: int, name: str) -> list[Goal]:
    """The user's goals of that title, or those that begin with it, current ones first; also goals put away."""
    current_first = F("archived_at").desc(nulls_first=True)
    mine = Goal.objects.filter(user=user_id).select_related("thread").order_by(current_first, "-thread__active_at")
    name = " ".join(name.split())
    return list(mine.called(name)[:10] if name else ())


def looked_into(goal: Goal) -> tuple[str, list[str]]:
    """All that matters of a goal, as sections like those of a prompt; and whose texts are in it (`memory.marks`)."""
    thread = goal.thread_id
    notes = list(Note.objects.filter(thread=thread).order_by("-created_at")[:NOTES_LISTED])
    learnings = list(Learning.objects.filter(thread=thread, ended_at=None).order_by("number"))
    memory = Document.objects.filter(thread=thread, name=MEMORY).first()
    ahead = list(Schedule.objects.filter(thread=thread, next_at__isnull=False))
    sections = {
        "description": escape(goal.description),
        **goal.remembered(),
        "plan": to_remind_of(thread),
        "asks_the_user": escape("\n".join(_asks(goal))),
        "learnings": learned([(each.number, each.text, each.sources) for each in learnings]),
        "notes": noted([(note.title, note.body, note.sources) for note in reversed(notes)]),
        "memory": escape(clip(memory.text, REMEMBERED)) if memory else "",
        "said_last": escape("\n\n".join(_said(thread))),
    }
    told = "\n".join(f"<{name}>\n{lines}\n</{name}>" for name, lines in sections.items() if lines)
    own = [*(note.sources for note in notes), *(each.sources for each in learnings), *(each.sources for each in ahead)]
    sources = merged(goal.thread.sources, memory.sources if memory else [], *own)
    return f"{goal.title} ({goal.status.label})\n{told}", sources


def _asks(goal: Goal) -> Iterator[str]:
    waiting = with_actions(Approval.objects.filter(user=goal.user_id).waiting()).order_by("requested_at")
    for action in (approval.action for approval in waiting):
        if agent_of(action.thread) == goal.thread_id:
            yield f"- {intention(action, target_of(action))}"


def _said(thread: UUID) -> Iterator[str]:
    said = ThreadMessage.objects.filter(thread=thread).said().exclude(metadata__has_key="thinking")
    for message in reversed(said.order_by("-position")[:MESSAGES]):
        who = "User" if message.source == Source.USER else "Agent"
        yield f"{who}, {message.created_at:%Y-%m-%d %H:%M} UTC: {clip(message.content, MESSAGE)}"
