"""What the page of a conversation is made of, whichever agent it is with."""

from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.http import HttpRequest

from agents.live import frames
from agents.live.screen import earlier, whole
from memory.models import Thread


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


def uuid_or_none(text: str) -> UUID | None:
    """An id that a page was given; one that is none is as good as none."""
    try:
        return UUID(text)
    except ValueError:
        return None
