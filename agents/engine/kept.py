"""What was sent to models word for word, kept once however often it is sent (mission E2)."""

import hashlib
import threading
from collections import OrderedDict
from typing import Final
from uuid import UUID

from memory import pool

# Texts that this process knows to be kept.
KNOWN: Final = 10_000

# Of a thread that is about to be deleted nothing is kept: its lock is waited for, and then there is no row.
KEEP = """
INSERT INTO agents_prompt (thread_id, digest, text)
SELECT t.id, e.digest, e.text FROM memory_thread t, unnest(%(digests)s::bytea[], %(texts)s::text[]) AS e(digest, text)
WHERE t.id = %(thread)s FOR KEY SHARE OF t ON CONFLICT DO NOTHING
"""

_known: OrderedDict[tuple[UUID, bytes], None] = OrderedDict()
_lock = threading.Lock()


def keep(thread_id: UUID, *texts: str) -> tuple[bytes, ...]:
    """Have texts on record as rows of `Prompt`; returns their digests. What this process has kept lately costs no
    statement."""
    digests = tuple(hashlib.sha256(text.encode()).digest() for text in texts)
    with _lock:
        fresh = {digest: text for digest, text in zip(digests, texts, strict=True) if (thread_id, digest) not in _known}
    if fresh:
        pool.execute(KEEP, {"thread": thread_id, "digests": [*fresh], "texts": [*fresh.values()]})
    with _lock:
        for digest in digests:
            _known[thread_id, digest] = None
            _known.move_to_end((thread_id, digest))
        while len(_known) > KNOWN:
            _known.popitem(last=False)
    return digests
