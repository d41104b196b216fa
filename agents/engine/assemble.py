"""Before a run is claimed: who is to work, with which model, tools and prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from django.apps import apps
from django.utils import timezone

from agents.agentable import Agentable
from agents.connections import Choice, choose
from agents.engine.journal import NextCall
from agents.models import ModelConnection
from agents.prompts import render
from memory import pool
from memory.context import Context, context_for
from memory.hot import load
from memory.models import LIVE, AgentRun, Thread
from memory.pool import orm
from tools.base import Audience, ToolSpec
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

    @property
    def specs(self) -> list[ToolSpec]:
        return [_spec(tool) for tool in self.tools.values()]


@cache
def _spec(tool: AnyTool) -> ToolSpec:
    """Kept, because making the schema of five tools takes a millisecond or two; there is one instance of each."""
    return tool.spec()


def summon(run_id: UUID) -> Summons | None:
    """Read what the run needs. None: the run is over or gone, so there is nothing to claim."""
    run = load(AgentRun, "id = %(run)s AND status = ANY(%(live)s)", {"run": run_id, "live": [*LIVE]})
    thread = load(Thread, "id = %(thread)s", {"thread": run.thread_id}) if run else None
    agentable = _agentable(thread) if thread else None
    if run is None or thread is None or agentable is None:
        return None
    with orm():  # a kind's own hooks may ask for more
        return Summons(
            agentable=agentable,
            thread=thread,
            trigger=run.trigger,
            choice=choose(agentable, _default_connection),
            system=render(agentable.prompt, agentable.briefing()),
            tools=tools_for(agentable.audience, agentable.disabled_tools()),
            context=context_for(thread, timezone.now(), _time_zone(thread.user_id), agentable.knows_notes),
        )


def _agentable(thread: Thread) -> Agentable | None:
    found = load(apps.get_model(thread.kind), "thread_id = %(thread)s", {"thread": thread.pk})
    assert found is None or isinstance(found, Agentable)
    return found


def _default_connection(user_id: int) -> ModelConnection | None:
    return load(ModelConnection, "user_id = %(user)s AND is_default", {"user": user_id})


def _time_zone(user_id: int) -> str:
    rows = pool.execute("SELECT time_zone FROM agents_useragent WHERE user_id = %(user)s", {"user": user_id})
    return str(rows[0][0]) if rows else "Etc/UTC"
