"""Identifiers: time-ordered UUIDs (RFC 9562, version 7), so that new rows land at the end of an index."""

import os
import time
import uuid
from datetime import datetime


def new_id() -> uuid.UUID:
    """Return a version 7 UUID. PostgreSQL 18 could make it, but older servers are allowed and so is Python 3.12."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10))
    return uuid.UUID(int=milliseconds << 80 | 7 << 76 | (random >> 64 & 0xFFF) << 64 | 2 << 62 | random & (1 << 62) - 1)


def least_id(moment: datetime) -> uuid.UUID:
    """What no identifier made at that moment or later is below: rows since then are found by their key."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)
