"""What the agent of a goal has set itself to do."""

from agents.api.plans import Plan
from goals.api.goals import GoalThread


class GoalPlan(GoalThread, Plan):
    pass
