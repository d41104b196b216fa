"""What the page of a conversation is made of, whichever agent it is with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

from django.conf import settings
from django.http import HttpRequest

from agents.live import frames
from agents.live.screen import earlier, whole
from agents.signed_in import SignedInRequest
from memory.models import Thread
from tools.models import AgentAction
from tools.undo import can_be_undone


def conversation(request: HttpRequest, thread: Thread, *, error: str = "", content: str = "") -> dict[str, Any]:
    """Return the context of agents/thread.html. `?before=` shows older turns, for browsers without script."""
    before = uuid_or_none(request.GET.get("before", ""))
    screen = earlier(thread, before) if before else whole(thread)
    return {
        "thread": thread,
        "screen": screen,
        "turns": frames.turns_html(screen),
        "last": screen.drawn[-1].id if screen.drawn else "",
        "client_message_id": uuid4(),
        "error": error,
        "content": content,
        "limit": settings.WAYMARK_MESSAGE_LENGTH,
        "most_files": settings.WAYMARK_ATTACHMENTS_PER_MESSAGE,
        "most_bytes": settings.WAYMARK_ATTACHMENT_BYTES,
        "most_bytes_together": settings.WAYMARK_ATTACHMENTS_BYTES,
    }


def done_at(address: str, action: AgentAction, asked: Mapping[str, str] = MappingProxyType({})) -> str:
    """The address of a page that is to say, once it was redirected to, what was just done there (`done_here`).

    Args:
        asked: its query: where in the page its person was.
    """
    return f"{address}?{urlencode({**asked, 'done': action.pk})}"


def done_here(request: SignedInRequest, thread: Thread) -> AgentAction | None:
    """What its person has just done on a page of a conversation, to be said with the way back beside it; None once it
    was taken back."""
    done = uuid_or_none(request.GET.get("done", ""))
    mine = AgentAction.objects.for_user(request.user).filter(thread=thread, run=None)
    action = mine.filter(pk=done).first() if done else None
    return action if action and can_be_undone(action) else None


def uuid_or_none(text: str) -> UUID | None:
    """An id that a page was given; one that is none is as good as none."""
    try:
        return UUID(text)
    except ValueError:
        return None
