"""Files of workspaces on their way out: always to be saved, never shown (threats T7, T14)."""

import asyncio
import os
from collections.abc import AsyncIterator
from threading import Lock
from typing import Final

from django.http import Http404, StreamingHttpResponse
from django.utils.http import content_disposition_header

from memory.files import UNKNOWN
from memory.models import Thread
from tools.filing import entry_of, opened

_CHUNK: Final = 262_144
_LOCKED: Final = "default-src 'none'; sandbox"


class _Saved:
    """A file that is opened and read in other threads. Whoever asked may leave meanwhile, which stops no thread: so it
    is closed when none is at it any more, and not opened after that."""

    def __init__(self, thread: Thread, path: str) -> None:
        self._thread, self._path = thread, path
        self._lock, self._is_over = Lock(), False
        self._descriptor: int | None = None

    def read(self, most: int) -> bytes:
        """The next bytes; none at the end, and when there is no such file any more."""
        with self._lock:
            if self._descriptor is None and not self._is_over:
                self._descriptor = opened(self._thread, self._path)
            return b"" if self._descriptor is None else os.read(self._descriptor, most)

    def close(self) -> None:
        with self._lock:
            self._is_over = True
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None


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
    saved = _Saved(thread, path)
    try:
        while size and (piece := await asyncio.to_thread(saved.read, min(size, _CHUNK))):
            size -= len(piece)
            yield piece
    finally:
        await asyncio.to_thread(saved.close)
