"""Files of workspaces on their way out: always to be saved, never shown (threats T7, T14)."""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Final

from django.http import Http404, StreamingHttpResponse
from django.utils.http import content_disposition_header

from memory.files import UNKNOWN
from memory.models import Thread
from tools.filing import entry_of, opened

_CHUNK: Final = 262_144
_LOCKED: Final = "default-src 'none'; sandbox"


def downloaded(thread: Thread, path: str) -> StreamingHttpResponse:
    """
    Raises:
        Http404: there is no such file, or none that may be read.
    """
    entry = entry_of(thread, path)
    if entry is None:
        raise Http404
    answer = StreamingHttpResponse(_pieces(thread, path, entry.size), content_type=UNKNOWN)
    answer["Content-Length"] = str(entry.size)
    answer["Content-Disposition"] = content_disposition_header(True, entry.name) or "attachment"
    answer["X-Content-Type-Options"], answer["Content-Security-Policy"] = "nosniff", _LOCKED
    answer["Cross-Origin-Resource-Policy"], answer["Cache-Control"] = "same-origin", "private, no-store"
    return answer


async def _pieces(thread: Thread, path: str, size: int) -> AsyncIterator[bytes]:
    """Opened only when it is sent, because whoever asked may have left. It may grow meanwhile; what was announced is
    sent."""
    descriptor = await asyncio.to_thread(opened, thread, path)
    if descriptor is None:
        return
    try:
        while size and (piece := await asyncio.to_thread(os.read, descriptor, min(size, _CHUNK))):
            size -= len(piece)
            yield piece
    finally:
        os.close(descriptor)
