"""Where the fault tests let a process die or stand still: a point is nothing at all unless the environment names it.

`WAYMARK_CRASHPOINT=D5.after` ends this process there as kill -9 does, `D5.after:3` at the third time it comes there.
`D8.before:1:SIGSTOP` freezes it there instead, until it is told to go on. A new durable point gets one line before and
one after its statement; tests/faults finds them by their names.
"""

import itertools
import os
import signal
import threading
from typing import NamedTuple


class Armed(NamedTuple):
    """A point, a count that reaches zero at the pass that is meant, and what happens there."""

    name: str
    passes: "itertools.count[int]"
    signal: int


def _parsed(wanted: str) -> Armed | None:
    name, passes, what = [*wanted.split(":"), "", ""][:3]
    return Armed(name, itertools.count(int(passes or 1) - 1, -1), signal.Signals[what or "SIGKILL"]) if name else None


_armed = _parsed(os.environ.get("WAYMARK_CRASHPOINT", ""))


def crashpoint(name: str) -> None:
    """Die here, or stand still, if the environment says so."""
    if _armed is not None and _armed.name == name and next(_armed.passes) == 0:
        # To this thread, which then takes the signal before it does anything else; another might be slow to.
        signal.pthread_kill(threading.get_ident(), _armed.signal)


def arm(wanted: str) -> None:
    """Name the point for a process that was forked, and so has read another environment."""
    global _armed
    _armed = _parsed(wanted)
