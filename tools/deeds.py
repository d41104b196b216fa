"""What people do themselves to what their agents work on: on record as actions of theirs, which can be taken back, and
told to the agent."""

from collections.abc import Mapping

from django.db.models.functions import Now
from pydantic import JsonValue

from memory.ids import new_id
from memory.models import Thread
from memory.news import tell
from memory.text import clip
from tools.base import Arguments, Effect, Outcome, Reversal, Risk, Tool, ToolContext, ToolError
from tools.changes import UndoRecord
from tools.models import ActionStatus, AgentAction


class Nothing(Arguments):
    pass


class Deed(Tool[Nothing]):
    """How the record speaks of something that people alone do. No agent is offered it."""

    description = "Only the user does this."
    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    audience = frozenset()
    Arguments = Nothing

    def run(self, arguments: Nothing, context: ToolContext) -> Outcome:
        raise ToolError("Only the user does this, on their page.")


def by_person(
    thread: Thread,
    tool: str,
    arguments: Mapping[str, JsonValue],
    name: str,
    undo: UndoRecord,
    news: str,
    effect: Effect = Effect.LOCAL,
) -> AgentAction:
    """Write down what the user of a thread has done, within the transaction that does it.

    Args:
        tool: whose words say what it was.
        name: of what it was done to.
        news: what the agent is told, after "The user".
    """
    tell(thread.pk, f"The user {news}: {clip(name, 200)}")
    return AgentAction.objects.create(
        id=new_id(),
        thread=thread,
        user_id=thread.user_id,
        step=0,
        position=0,
        call_id="",
        tool=tool,
        effect=effect,
        risk=Risk.ALLOWED,
        reversal=Reversal.UNDOABLE,
        arguments=arguments,
        status=ActionStatus.DONE,
        summary=clip(name, 80),
        undo=undo.model_dump(mode="json"),
        started_at=Now(),
        finished_at=Now(),
    )
