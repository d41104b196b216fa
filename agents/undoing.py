"""What people take back: one call of an agent, or a person's own undo of one (mission D8)."""

from functools import partial

from django.contrib.auth.models import User
from django.db import transaction

from agents.live.announce import announce_action
from agents.refusals import Refused
from memory.models import Thread
from memory.news import tell
from tools.models import AgentAction
from tools.undo import CannotUndo, recorded, told, undo


def take_back(action: AgentAction, user: User) -> AgentAction:
    """Take back what a call did; its agent learns it with the next message. Returns the undo, an action itself.

    Args:
        action: from the user's own door.

    Raises:
        Refused: it was undone already, cannot be, or was changed since; nothing was taken back.
    """
    with transaction.atomic():
        thread = Thread.objects.select_for_update(no_key=True).get(pk=action.thread_id)
        try:
            record, _ = undo(action.pk, user.pk)
        except CannotUndo as problem:
            raise Refused("not_undone", str(problem)) from problem
        words = told(action.undoes or action)
        done = recorded(action, user.pk, record, words)
        tell(thread.pk, f"The user has {'done this again' if action.undoes else 'undone this'}: {words}")
        for changed in filter(None, (action.pk, action.undoes_id)):
            transaction.on_commit(partial(announce_action, thread, changed))
    return done
