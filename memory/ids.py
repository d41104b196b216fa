"""Identifiers: time-ordered UUIDs (RFC 9562, version 7), so that new rows land at the end of an index."""

import os
import time
import uuid
from datetime import datetime


def new_id() -> uuid.UUID:
    """Return a version 7 UUID. PostgreSQL 18 could make it, but older servers are allowed and so is Python 3.12.

    Behind the milliseconds stand twelve bits of what is left of the time (method 3 of the RFC's section 6.2): a process
    makes several within one, and they are in order, too.
    """
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = (rest << 12) // 1_000_000
    random = int.from_bytes(os.urandom(8)) >> 2
    return uuid.UUID(int=milliseconds << 80 | 7 << 76 | fraction << 64 | 2 << 62 | random)


def least_id(moment: datetime) -> uuid.UUID:
    """What no identifier made at that moment or later is below: rows since then are found by their key."""
    return uuid.UUID(int=int(moment.timestamp() * 1000) << 80)
