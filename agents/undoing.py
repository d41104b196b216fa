"""What people take back: one call of an agent, or a person's own undo of one (mission D8)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from agents.live.announce import announce_action
from agents.refusals import Refused
from memory.models import Thread
from memory.news import tell
from tools import trust
from tools.models import AgentAction
from tools.undo import CannotUndo, Undone, holding, locked, recorded, told, told_of, undo

UNDONE = "You undid what it did."


def take_back(action: AgentAction, user: User) -> AgentAction:
    """Take back what a call did; its agent learns it with the next message. Twice is the same as once.

    Args:
        action: from the user's own door.

    Returns:
        The undo, an action itself.

    Raises:
        Refused: it cannot be, or was changed since; nothing was taken back.
    """
    with transaction.atomic():
        now = locked(action.pk, user.pk)
        if now is None:
            raise Refused("not_undone", "There is no such action.")
        if now.undone and (before := holding(now)):
            return before
        try:
            undone = undo(now, user.pk)
        except CannotUndo as problem:
            raise Refused("not_undone", str(problem)) from problem
        done = recorded(action, user.pk, undone)
        trust.revoke(action.thread_id, action.tool, UNDONE)
        tell(action.thread_id, f"The user has {_news(action)}" if undone.is_whole else _half(action, undone))
        transaction.on_commit(partial(_announce, action.thread, undone.touched))
    return done


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one of several actions: its undo, if there is one, and why it stays, or a part of it."""

    action: AgentAction
    undo: AgentAction | None
    why: str = ""


def take_back_all(actions: Iterable[AgentAction], user: User) -> list[Taken]:
    """Take back several calls, in this order, each as `take_back`: what cannot be stays, and the others go on."""
    return [_taken(action, user) for action in actions]


def _taken(action: AgentAction, user: User) -> Taken:
    try:
        done = take_back(action, user)
    except Refused as refused:
        return Taken(action, None, refused.message)
    is_whole = AgentAction.objects.filter(pk=action.pk, undone=True).exists()
    return Taken(action, done, "" if is_whole else done.output)


def _news(action: AgentAction) -> str:
    return f"done this again: {told(action.undoes)}" if action.undoes else f"undone this: {told(action)}"


def _half(action: AgentAction, undone: Undone) -> str:
    return f"The user has tried to take this back, which went half-way: {told(action)}. {told_of(undone.parts)}"


def _announce(thread: Thread, touched: Sequence[UUID]) -> None:
    for action_id in touched:
        announce_action(thread, action_id)
