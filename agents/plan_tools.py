"""How an agent breaks its work into steps, and shows that they are done (mission A7, A8)."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from agents import plans
from agents.evidence import Claim
from agents.plans import MOST_SUBTASKS, MOST_TASKS, Planned, told
from agents.refusals import Refused
from memory.models import Thread
from memory.text import clip
from tools.base import Arguments, Effect, Outcome, Reversal, Tool, ToolContext, ToolError, Wording

type Step = Annotated[str, Field(min_length=1, max_length=300)]


class TaskAsked(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1, max_length=300, description="What is to come of it.")
    subtasks: list[Step] = Field(
        min_length=1, max_length=MOST_SUBTASKS, description="Concrete steps, in order; each needs at least one tool."
    )


class PlanAsked(Arguments):
    tasks: list[TaskAsked] = Field(min_length=1, max_length=MOST_TASKS, description="One to three are usual.")


class MakePlan(Tool[PlanAsked]):
    """Compensable: another plan takes its place."""

    name = "make_plan"
    description = (
        "Break work of several steps into tasks and subtasks, before you begin. The new plan takes the place of the "
        "one before. Close each subtask with mark_subtask_complete."
    )
    wording = Wording("list-todo", "Making a plan", "Made a plan", "Could not make a plan")
    effect = Effect.LOCAL
    reversal = Reversal.COMPENSABLE
    parallel_safe = False
    contained = True
    is_work = False
    Arguments = PlanAsked

    def subject(self, arguments: PlanAsked) -> str:
        return clip(arguments.tasks[0].title, 80)

    def run(self, arguments: PlanAsked, context: ToolContext) -> Outcome:
        asked = [Planned(task.title, task.subtasks) for task in arguments.tasks]
        try:
            items = plans.make_plan(Thread.objects.get(pk=context.thread_id), asked)
        except Refused as refused:
            raise ToolError(refused.message) from refused
        steps = sum(1 for item in items if item.parent_id)
        return Outcome(told(context.thread_id), f"{steps} step{'' if steps == 1 else 's'}")


class Evidence(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["action", "file", "note"]
    name: str = Field(
        min_length=1,
        max_length=500,
        description="Of an action its id, or the name of the tool for its last call; of a file its path; of a note "
        "its title or id.",
    )


class Closing(Arguments):
    subtask: str = Field(max_length=8, description="Its number in the plan, such as 1.2.")
    success: bool
    reason: str = Field(max_length=2_000, description="What came of it, or why it cannot be done.")
    evidence: list[Evidence] = Field(
        default=[], max_length=10, description="What proves it: actions, files or notes that exist. Needed for success."
    )


class MarkSubtaskComplete(Tool[Closing]):
    """Compensable: another plan may ask for it again."""

    name = "mark_subtask_complete"
    description = (
        "Close a subtask of your plan. A success is taken only with evidence of what was really done since the plan "
        "was made; words are none."
    )
    wording = Wording("check", "Closing a step", "Closed a step", "Could not close the step")
    effect = Effect.LOCAL
    reversal = Reversal.COMPENSABLE
    parallel_safe = False
    contained = True
    is_work = False
    Arguments = Closing

    def subject(self, arguments: Closing) -> str:
        return arguments.subtask

    def run(self, arguments: Closing, context: ToolContext) -> Outcome:
        thread = Thread.objects.get(pk=context.thread_id)
        claims = [Claim(each.kind, each.name) for each in arguments.evidence]
        try:
            item = plans.close(
                thread, arguments.subtask, success=arguments.success, reason=arguments.reason, claims=claims
            )
        except Refused as refused:
            raise ToolError(refused.message) from refused
        return Outcome(told(context.thread_id), clip(str(item), 80))
