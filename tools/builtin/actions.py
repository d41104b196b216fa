"""What the agent has done, and taking it back."""

from uuid import UUID

from pydantic import Field, ValidationError

from tools import trust
from tools.base import Arguments, Effect, Outcome, Reversal, Tool, ToolContext, ToolError, Topic, Wording
from tools.models import AgentAction
from tools.registry import find
from tools.undo import NAME, CannotUndo, locked, quoted, recent, root_of, said, told, undo

MOST = 50
UNDONE = "Its agent undid what it did."


class HowMany(Arguments):
    most: int = Field(10, ge=1, le=MOST, description="How many of them, the newest first.")


class ListRecentActions(Tool[HowMany]):
    name = "list_recent_actions"
    topic = Topic.RECORD
    description = (
        "List what you, and helpers that you have sent off, have done in this conversation, the newest first, with "
        "ids, and whether you can undo it."
    )
    wording = Wording(
        "history",
        "Look at what was done",
        "Looking at what was done",
        "Looked at what was done",
        "Could not look at that",
    )
    is_work = False
    Arguments = HowMany

    def run(self, arguments: HowMany, context: ToolContext) -> Outcome:
        found = list(recent(context.user_id, context.thread_id, arguments.most))
        return Outcome("\n".join(map(_line, found)) or "Nothing was done yet.", f"{len(found)} found")


class OneAction(Arguments):
    id: UUID = Field(description="Of the action, as list_recent_actions gives it.")


class UndoAction(Tool[OneAction]):
    name = NAME
    description = (
        "Take back something that you have done in this conversation, when the user asks for it or it was a mistake. "
        "Refused when it was changed since."
    )
    wording = Wording("undo-2", "Undo", "Undoing", "Undid", "Could not undo")
    topic = Topic.RECORD
    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    parallel_safe = False
    is_work = False
    Arguments = OneAction

    def is_contained(self, arguments: OneAction, context: ToolContext) -> bool:
        """Of what the agent did by itself. Doing again what was undone, or changing back what a person owns, is the
        same as doing it."""
        action = AgentAction.objects.filter(pk=arguments.id, user=context.user_id, thread=context.thread_id).first()
        return action is None or (action.undoes_id is None and _was_contained(action, context))

    def run(self, arguments: OneAction, context: ToolContext) -> Outcome:
        action = locked(arguments.id, context.user_id)
        if action is None or action.thread_id != context.thread_id:
            raise ToolError("There is no action with this id in this conversation; list_recent_actions gives the ids.")
        if action.run_id is None:
            raise ToolError("The user did this, and only they take it back.")
        if not context.offers(root_of(action).tool):
            raise ToolError("The tool that did this is switched off, so only the user takes it back.")
        try:
            undone = undo(action, context.user_id)
        except CannotUndo as problem:
            raise ToolError(str(problem)) from problem
        AgentAction.objects.filter(pk=context.action_id).update(undoes=action)
        trust.revoke(context.thread_id, action.tool, UNDONE)
        head = "It was undone:" if undone.is_whole else "It was undone in part:"
        observation = "\n- ".join([head, *map(said, undone.parts)])
        return Outcome(observation, quoted(action), undone.record, touched=undone.touched)


def _was_contained(action: AgentAction, context: ToolContext) -> bool:
    tool = find(action.tool, action.user_id)
    try:
        return tool is not None and tool.is_contained(tool.Arguments.model_validate(action.arguments), context)
    except ValidationError:
        return False


def _line(action: AgentAction) -> str:
    helper = getattr(action.thread, "agents_agenttask", None)
    possible = "can be undone" if vars(action)["reversible"] else "cannot be undone"
    state = "undone" if action.undone else f"by the helper {helper.title!r}" if helper else possible
    return f"- {told(action)} (id {action.pk}, {action.created_at:%Y-%m-%d %H:%M} UTC, {state})"
