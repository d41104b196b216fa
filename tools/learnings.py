"""How learnings are read and put back by an undo, and what people do to them themselves (missions D8, E1 and H9)."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from memory.learnings import end, learn, locked_learning
from memory.models import Learning, Thread
from memory.text import clip
from tools.changes import Image, UndoRecord
from tools.deeds import by_person
from tools.models import AgentAction
from tools.rows import RowRestorer

REPLACED, TAKEN_BACK, TOLD = "correct_learning", "take_back_learning", "tell_learning"


def image(learning: Learning) -> Image:
    return {
        "thread_id": str(learning.thread_id),
        "number": learning.number,
        "text": learning.text,
        "author": learning.author,
        "sources": learning.sources,
        "message_id": str(learning.message_id) if learning.message_id else None,
        "action": str(learning.action) if learning.action else None,
        "replaced_by_id": str(learning.replaced_by_id) if learning.replaced_by_id else None,
        "created_at": learning.created_at.isoformat(),
        "ended_at": learning.ended_at.isoformat() if learning.ended_at else None,
    }


class LearningRestorer(RowRestorer):
    kind = "learning"
    model = Learning
    fills = True
    image = staticmethod(image)


def record(learned: Learning | None, ended: Learning | None, before: Image | None) -> UndoRecord:
    """What came, and what went for it. An undo takes the last one first: nothing may point to what is not there.

    Args:
        before: how `ended` was.
    """
    restorer, changes = LearningRestorer(), []
    if learned:
        learned.refresh_from_db()
        changes.append(restorer.change(str(learned.pk), clip(learned.text, 80), None, image(learned)))
    if ended:
        changes.append(restorer.change(str(ended.pk), clip(ended.text, 80), before, image(ended)))
    return UndoRecord(changes=tuple(changes))


def tell(thread: Thread, text: str) -> AgentAction:
    """Have an agent keep something in mind.

    Raises:
        LearningRefused: as `learn`.
    """
    with transaction.atomic():
        learned = learn(thread, text, both_hold=True)
        undo = record(learned, None, None)
        return by_person(thread, TOLD, {"text": learned.text}, learned.text, undo, "wants you to keep in mind")


def correct(user: User, learning_id: UUID, text: str) -> AgentAction | None:
    """Put what is right in the place of a learning. None: the user has none of that id, or it holds no more.

    Raises:
        LearningRefused: as `learn`.
    """
    with transaction.atomic():
        wrong = locked_learning(user.pk, learning_id)
        if wrong is None:
            return None
        before = image(wrong)
        learned = learn(wrong.thread, text, replacing=wrong, both_hold=True)
        undo = record(learned, wrong, before)
        news = f"has corrected number {wrong.number} of your learnings"
        return by_person(wrong.thread, REPLACED, {"text": learned.text}, learned.text, undo, news)


def take_back(user: User, learning_id: UUID) -> AgentAction | None:
    """Let a learning hold no more. None: the user has none of that id, or it holds no more."""
    with transaction.atomic():
        wrong = locked_learning(user.pk, learning_id)
        if wrong is None:
            return None
        before = image(wrong)
        end(wrong)
        undo = record(None, wrong, before)
        news = "has taken back what you had learned"
        return by_person(wrong.thread, TAKEN_BACK, {"id": str(wrong.pk)}, wrong.text, undo, news)
