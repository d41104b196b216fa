"""What was sent to models word for word, kept once however often it is sent (mission E2), and not for ever."""

import hashlib
import threading
import time
from collections import OrderedDict
from typing import Final
from uuid import UUID

from django.conf import settings

from memory import pool

# Texts that this process knows to be kept, and for how many seconds: then it says again that they are sent.
KNOWN: Final = 10_000
KNOWN_SECONDS: Final = 3600

# Of a thread that is about to be deleted nothing is kept: its lock is waited for, and then there is no row.
KEEP = """
INSERT INTO agents_prompt (thread_id, digest, text)
SELECT t.id, e.digest, e.text FROM memory_thread t, unnest(%(digests)s::bytea[], %(texts)s::text[]) AS e(digest, text)
WHERE t.id = %(thread)s FOR KEY SHARE OF t ON CONFLICT (thread_id, digest) DO UPDATE SET sent_at = now()
"""

# What is being sent again just now is locked, and stays.
FORGET = """
DELETE FROM agents_prompt WHERE id IN (
  SELECT id FROM agents_prompt WHERE sent_at < now() - make_interval(days => %(days)s)
  ORDER BY sent_at LIMIT %(most)s FOR UPDATE SKIP LOCKED)
RETURNING id
"""
BATCHES: Final = 50
"""That are deleted at a time, each in a transaction of its own."""

_known: OrderedDict[tuple[UUID, bytes], float] = OrderedDict()
_lock = threading.Lock()


def keep(thread_id: UUID, *texts: str) -> tuple[bytes, ...]:
    """Have texts on record as rows of `Prompt`; returns their digests. What this process has kept lately costs no
    statement."""
    digests = tuple(hashlib.sha256(text.encode()).digest() for text in texts)
    now = time.monotonic()
    with _lock:
        fresh = {
            digest: text
            for digest, text in zip(digests, texts, strict=True)
            if now - _known.get((thread_id, digest), -KNOWN_SECONDS) >= KNOWN_SECONDS
        }
    if fresh:
        pool.execute(KEEP, {"thread": thread_id, "digests": [*fresh], "texts": [*fresh.values()]})
    with _lock:
        for digest in fresh:
            _known[thread_id, digest] = now
            _known.move_to_end((thread_id, digest))
        while len(_known) > KNOWN:
            _known.popitem(last=False)
    return digests


def forget() -> None:
    """Delete what was not sent for WAYMARK_PROMPTS_KEPT_DAYS. A run that begins has its prompt on record again, so none
    that is at work misses one; pages of older calls say what is gone (`agents.sent`)."""
    days, most = settings.WAYMARK_PROMPTS_KEPT_DAYS, settings.WAYMARK_HEALTH_BATCH
    for _batch in range(BATCHES if days else 0):
        if len(pool.execute(FORGET, {"days": days, "most": most})) < most:
            return
