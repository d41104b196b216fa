"""What the model may do to agents."""

from functools import partial
from typing import Annotated

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, TextField
from django.db.models.functions import Cast
from pydantic import Field

from agents.delegation import delegate
from agents.models import AgentTask, TaskStatus
from agents.refusals import Refused
from agents.stopping import CALLED_BACK, UNFINISHED, cancel_task, stop_at_work
from memory.models import Thread
from memory.text import clip, visible
from tools.base import (
    Arguments,
    Audience,
    Effect,
    Outcome,
    Reversal,
    Risk,
    Tool,
    ToolContext,
    ToolError,
    Topic,
    Wording,
)
from tools.changes import Image, UndoRecord
from tools.restoring import FIRST_CHANGED, CannotRestore, Restorer

AT_WORK: Image = {"state": "at work"}
OVER: Image = {"state": "over"}


class Speaks[A: Arguments](Tool[A]):
    """A tool that says something to the user: the engine posts what was `said` as the agent's message, in the commit
    that records the outcome."""

    effect = Effect.IDEMPOTENT
    reversal = Reversal.COMPENSABLE
    way_back = "Cannot be undone; another message can correct it"
    risk = Risk.ALLOWED
    audience = frozenset({Audience.CONVERSATION})
    parallel_safe = False
    speaks = True
    contained = True
    is_work = False


class Words(Arguments):
    text: str = Field(description="What to say to the user, in markdown.")


class SendMessage(Speaks[Words]):
    name = "send_message"
    description = "Say something to the user. This ends your turn, so say everything that is needed."
    wording = Wording("message-circle", "Write to you", "Writing to you", "Wrote to you", "Could not write to you")
    Arguments = Words

    def run(self, arguments: Words, context: ToolContext) -> Outcome:
        if not arguments.text.strip():
            raise ToolError("The text is blank; nothing was sent.")
        return Outcome("The message was delivered.", said=arguments.text)


class Question(Arguments):
    question: str = Field(min_length=1, description="What you want to know, in markdown, with all that the user needs.")
    answers: tuple[Annotated[str, Field(min_length=1, max_length=80)], ...] = Field(
        (),
        max_length=6,
        description="Short answers of which the user can pick one; they may write another. None for an open question.",
    )


class AskUser(Speaks[Question]):
    """What was picked comes as the user's next message."""

    name = "ask_user"
    description = (
        "Ask the user something that you cannot go on without, or that is theirs to choose. This ends your turn; the "
        "answer comes as their next message, perhaps days later."
    )
    wording = Wording("message-circle", "Ask you", "Asking you", "Asked you", "Could not ask you")
    Arguments = Question

    def run(self, arguments: Question, context: ToolContext) -> Outcome:
        answers = tuple(dict.fromkeys(visible(answer) for answer in arguments.answers))
        if not arguments.question.strip() or not all(answers):
            raise ToolError("The question or an answer is blank; nothing was asked.")
        return Outcome("The user was asked.", said=arguments.question, asks=answers)


class Assignment(Arguments):
    title: str = Field(description="A short name of the task, at most 100 characters.", max_length=100)
    instructions: str = Field(description="Everything the sub-agent must know: it sees nothing else of this talk.")
    report_as_note: bool = Field(default=False, description="Also keep the report as a note for the user.")


class CreateTask(Tool[Assignment]):
    name = "create_task"
    topic = Topic.PLANS
    description = (
        "Send a sub-agent off to work in the background, for research or anything that takes several steps. "
        "Its report comes back to you as a message; do not wait for it."
    )
    wording = Wording(
        "list-todo", "Send a helper off", "Sending a helper off", "Sent a helper off", "Could not send a helper off"
    )
    effect = Effect.LOCAL
    reversal = Reversal.COMPENSABLE
    way_back = "Cannot be undone once the helper has reported"
    audience = frozenset({Audience.CONVERSATION})
    parallel_safe = False
    contained = True
    is_work = False
    Arguments = Assignment

    def subject(self, arguments: Assignment) -> str:
        return clip(arguments.title, 80)

    def run(self, arguments: Assignment, context: ToolContext) -> Outcome:
        parent = Thread.objects.select_related("user").get(pk=context.thread_id)
        try:
            task = delegate(
                parent,
                arguments.title,
                arguments.instructions,
                context.run_id,
                report_as_note=arguments.report_as_note,
            )
        except Refused as refused:
            raise ToolError(refused.message) from refused
        return Outcome(
            f"The task {task.title!r} (id {task.pk}) is under way. Its report will come as a message.",
            clip(task.title, 80),
            UndoRecord(changes=(TaskRestorer().change(str(task.pk), task.title, None, AT_WORK),)),
        )


class TaskRestorer(Restorer):
    """A sub-agent that is at work can be called back; it cannot begin anew, and what it has reported stays said."""

    kind = "task"

    def read(self, owner: int, key: str, *, lock: bool = False) -> Image | None:
        tasks = AgentTask.objects.select_for_update(no_key=True) if lock else AgentTask.objects.all()
        task = tasks.filter(pk=key, user_id=owner).first()
        if task is None or task.status == TaskStatus.CANCELLED:
            return None
        return AT_WORK if task.status in UNFINISHED else OVER

    def refusal(self, now: Image | None, target: Image | None) -> str:
        if target is not None:
            return "A helper that was called back does not begin anew; send another one off."
        return "It is over, and its report has come." if now == OVER else ""

    def settled(self) -> Q:
        """What is over."""
        named = AgentTask.objects.annotate(key=Cast("pk", TextField()))
        at_work = named.filter(sent_by=OuterRef("run"), key=FIRST_CHANGED, status__in=UNFINISHED)
        return Q(undo__changes__0__kind=self.kind) & ~Q(Exists(at_work))

    def write(self, owner: int, key: str, image: Image | None) -> None:
        task = AgentTask.objects.get(pk=key, user_id=owner)
        if not cancel_task(task, UNFINISHED, CALLED_BACK):
            raise CannotRestore("it is over.")
        transaction.on_commit(partial(stop_at_work, task))
