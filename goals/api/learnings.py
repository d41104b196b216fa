"""What the agent of a goal keeps in mind."""

from agents.api.learnings import Learnings
from goals.api.goals import GoalThread


class GoalLearnings(GoalThread, Learnings):
    pass
