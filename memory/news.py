"""What an agent learns with the next message that it takes up. Nobody wakes it for that: it would cost, and nothing was
asked. The claim puts it before the message, in the same entry of the history, and forgets it in the same commit."""

from uuid import UUID
from xml.sax.saxutils import escape

from django.db.models import F, Value
from django.db.models.functions import Concat

from memory.models import Thread


def line(words: str) -> str:
    """One piece of news as it stands in `Thread.news`."""
    return f"- {escape(' '.join(words.split()))}\n"


def tell(thread_id: UUID, words: str) -> None:
    """Keep a piece of news for an agent. Inside a transaction the thread's row stays locked, so it comes before those
    of runs and actions."""
    Thread.objects.filter(pk=thread_id).update(news=Concat(F("news"), Value(line(words))))
