"""The memory and the daily notes of the agent of a goal."""

from agents.api.documents import AgentDocuments
from goals.api.goals import GoalThread


class GoalDocuments(GoalThread, AgentDocuments):
    pass
