"""Before a run is claimed: who is to work, with which model, tools and prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from agents.agentable import Agentable, agentable_of
from agents.connections import Choice, choose
from agents.engine.journal import NextCall
from agents.models import UserAgent
from agents.prompts import render
from memory.context import Context, context_for
from memory.models import AgentRun, Thread
from memory.pool import orm
from tools.base import Audience
from tools.registry import AnyTool, tools_for


@dataclass(frozen=True, slots=True)
class Summons:
    """Everything a run needs that is read, not claimed."""

    agentable: Agentable
    thread: Thread
    trigger: str
    choice: Choice
    system: str
    tools: Mapping[str, AnyTool]
    context: Context

    @property
    def next_call(self) -> NextCall:
        return NextCall(self.choice.endpoint.kind, self.choice.model)

    @property
    def converses(self) -> bool:
        return self.agentable.audience is Audience.CONVERSATION


def summon(run_id: UUID) -> Summons | None:
    """Read what the run needs. None: the run is over or gone, so there is nothing to claim."""
    with orm():
        run = AgentRun.objects.live().select_related("thread__user").filter(pk=run_id).first()
        if run is None:
            return None
        agentable = agentable_of(run.thread)
        return Summons(
            agentable=agentable,
            thread=run.thread,
            trigger=run.trigger,
            choice=choose(agentable),
            system=render(agentable.prompt, agentable.briefing()),
            tools=tools_for(agentable.audience, agentable.disabled_tools()),
            context=context_for(run.thread, timezone.now(), _time_zone(run.thread.user_id), agentable.knows_notes),
        )


def _time_zone(user_id: int) -> str:
    return UserAgent.objects.filter(user_id=user_id).values_list("time_zone", flat=True).first() or "Etc/UTC"
