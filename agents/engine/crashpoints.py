"""Where the fault tests let a process die: a point is nothing at all unless the environment names it.

`WAYMARK_CRASHPOINT=D5.after` ends this process there as kill -9 does, `D5.after:3` at the third time it comes there.
A new durable point gets one line before and one after its statement; tests/faults finds them by their names.
"""

import itertools
import os
import signal

type Armed = tuple[str, "itertools.count[int]"]


def _parsed(wanted: str) -> Armed | None:
    """The point and a count that reaches zero at the pass that ends the process."""
    name, _, passes = wanted.partition(":")
    return (name, itertools.count(int(passes or 1) - 1, -1)) if name else None


_armed = _parsed(os.environ.get("WAYMARK_CRASHPOINT", ""))


def crashpoint(name: str) -> None:
    """Die here if the environment says so."""
    if _armed is not None and _armed[0] == name and next(_armed[1]) == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def arm(wanted: str) -> None:
    """Name the point for a process that was forked, and so has read another environment."""
    global _armed
    _armed = _parsed(wanted)
