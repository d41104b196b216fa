"""How an agent breaks its work into steps, and shows that they are done (mission A7, A8)."""

from pydantic import Field

from agents import plans
from agents.evidence import Claim
from agents.plan_item import PlanItem
from agents.planned import current_plan, outline
from agents.plans import MOST_TASKS, PlannedTask
from agents.refusals import Refused
from agents.tools import CreateTask
from memory.models import Thread
from memory.text import clip
from tools import registry
from tools.base import Arguments, Effect, Outcome, Reversal, Tool, ToolContext, ToolError, Topic, Wording
from tools.models import ActionStatus, AgentAction

_SENT_BACK = "Nothing was planned yet, because no tool does this: "


class PlanAsked(Arguments):
    tasks: list[PlannedTask] = Field(min_length=1, max_length=MOST_TASKS, description="One to three are usual.")


class MakePlan(Tool[PlanAsked]):
    name = "make_plan"
    topic = Topic.PLANS
    description = (
        "Break work of several steps into tasks and concrete subtasks, before you begin; of each name the tool that "
        "does it. The new plan takes the place of the one before; proven subtasks with the same words stay done. Close "
        "each with mark_subtask_complete."
    )
    wording = Wording("list-todo", "Make a plan", "Making a plan", "Made a plan", "Could not make a plan")
    effect = Effect.LOCAL
    reversal = Reversal.COMPENSABLE
    way_back = "Cannot be undone; another plan can take its place"
    parallel_safe = False
    contained = True
    is_work = False
    Arguments = PlanAsked

    def subject(self, arguments: PlanAsked) -> str:
        return clip(arguments.tasks[0].title, 80)

    def run(self, arguments: PlanAsked, context: ToolContext) -> Outcome:
        abstract = [step.title for task in arguments.tasks for step in task.subtasks if not _does(step.tool, context)]
        if abstract and not _was_sent_back(context):
            raise ToolError(
                f"{_SENT_BACK}{clip('; '.join(abstract), 500)}. Make it a deed and name its tool: one that you have, "
                "and that does more than look, plan or talk; or leave it out. If it must stay as it is, send the plan "
                "again."
            )
        try:
            items = plans.make_plan(Thread.objects.get(pk=context.thread_id), arguments.tasks)
        except Refused as refused:
            raise ToolError(refused.message) from refused
        steps = sum(1 for item in items if item.parent_id)
        return Outcome(outline(current_plan(context.thread_id)), f"{steps} step{'' if steps == 1 else 's'}")


def _does(name: str, context: ToolContext) -> bool:
    """Whether a tool can do, and prove, a step of a plan: itself, or by a helper that it sends off."""
    tool = registry.find(name, context.user_id)
    return tool is not None and (tool.is_work or name == CreateTask.name) and context.offers(name)


def _was_sent_back(context: ToolContext) -> bool:
    """Once in a run is enough: not every model knows better, and a plan with a vague step is better than none."""
    plans_refused = AgentAction.objects.filter(run=context.run_id, tool=MakePlan.name, status=ActionStatus.ERROR)
    return plans_refused.filter(error__contains=_SENT_BACK).exists()


class Closing(Arguments):
    subtask: str = Field(max_length=PlanItem.NUMBER_LENGTH, description="Its number in the plan, such as 1.2.")
    success: bool
    reason: str = Field(max_length=2_000, description="What came of it, or why it cannot be done.")
    evidence: list[Claim] = Field(
        default=[], max_length=10, description="What proves it: actions, files or notes that exist. Needed for success."
    )


class MarkSubtaskComplete(Tool[Closing]):
    name = "mark_subtask_complete"
    topic = Topic.PLANS
    description = (
        "Close a subtask of your plan. A success is taken only with evidence of what was really done since the plan "
        "was made and still holds, one deed for one subtask; words are none, nor are looks at what is here."
    )
    wording = Wording("check", "Close a step", "Closing a step", "Closed a step", "Could not close the step")
    effect = Effect.LOCAL
    reversal = Reversal.COMPENSABLE
    way_back = "Cannot be undone; another plan can ask for it again"
    parallel_safe = False
    contained = True
    is_work = False
    Arguments = Closing

    def subject(self, arguments: Closing) -> str:
        return arguments.subtask

    def run(self, arguments: Closing, context: ToolContext) -> Outcome:
        thread = Thread.objects.get(pk=context.thread_id)
        try:
            item = plans.close(
                thread,
                arguments.subtask,
                success=arguments.success,
                reason=arguments.reason,
                claims=arguments.evidence,
            )
        except Refused as refused:
            raise ToolError(refused.message) from refused
        return Outcome(outline(current_plan(context.thread_id)), clip(str(item), 80))
