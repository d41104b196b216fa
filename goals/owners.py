"""Whose a run, a call or an approval is: loaded with it, for lists."""

from django.core.exceptions import ObjectDoesNotExist
from django.urls import reverse

from agents.agentable import Agentable, agentable_of
from agents.models import AgentTask, UserAgent
from goals.models import Goal
from memory.models import Thread
from tools.models import ApprovalQuerySet

_KINDS = ("goals_goal", "agents_useragent", "agents_agenttask")
OUR_KINDS = (Goal.kind(), UserAgent.kind(), AgentTask.kind())
OWNERS = tuple(f"thread__{kind}" for kind in _KINDS)


def with_actions(approvals: ApprovalQuerySet) -> ApprovalQuerySet:
    """With the calls that they are about, whose those are, and without what may be long."""
    owners = (f"action__{owner}" for owner in OWNERS)
    return approvals.select_related("action", *owners).defer("action__undo", "action__output")


def owner_of(thread: Thread | None) -> Agentable | None:
    """The agent of a thread: what OWNERS has loaded, else a query of its own. None: it was deleted, or its kind is gone
    from this server."""
    loaded = (getattr(thread, kind, None) for kind in _KINDS)
    known: Agentable | None = next(filter(None, loaded), None)
    if known or thread is None:
        return known
    try:
        return agentable_of(thread)
    except (ObjectDoesNotExist, LookupError):
        return None


def conversation_of(thread: Thread | None) -> str:
    """The address of the conversation that a thread belongs to: a helper's is that of who sent it off. Of an agent that
    has no page of its own, that of all jobs."""
    owner = owner_of(thread)
    return (owner.address() if owner else "") or reverse("jobs")
