"""Where a process with many threads spends its CPU time.

A thread looks at the others every millisecond and books what each has used since then, by its own CPU clock, on the
stack it is at. cProfile cannot do this: since Python 3.12 it mixes the calls of all threads into one stack.
"""

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

PAUSE_SECONDS = 0.001
NOW = "now"
SWITCH_SECONDS = 0.0005
DEEPEST = 90


def sampled(run: Callable[[], None], file: Path) -> None:
    """Call `run` and write to `file` how much CPU time, in microseconds, was spent at each stack while there was a file
    called `now` beside it."""
    stacks: Counter[str] = Counter()
    over = threading.Event()
    threading.Thread(target=_watch, args=(stacks, over, file.with_name(NOW)), daemon=True, name="sampler").start()
    try:
        run()
    finally:
        over.set()
        file.write_text(json.dumps(dict(stacks)))


def _watch(stacks: Counter[str], over: threading.Event, now_file: Path) -> None:
    # Otherwise samples gather at the places where a thread gives up the interpreter's lock by itself.
    sys.setswitchinterval(SWITCH_SECONDS)
    used: dict[int, int] = {}
    while not over.wait(PAUSE_SECONDS):
        counting = now_file.exists()
        for thread, frame in sys._current_frames().items():
            if thread == threading.get_ident():
                continue
            try:
                now = time.clock_gettime_ns(time.pthread_getcpuclockid(thread))
            except OSError:
                continue
            before = used.get(thread, 0)
            spent = now - before if now >= before else now  # the number may have belonged to a thread that has ended
            used[thread] = now
            if spent and counting:
                stacks[_stack(frame)] += spent // 1000


def _stack(frame: FrameType | None) -> str:
    names: list[str] = []
    while frame is not None and len(names) < DEEPEST:
        code = frame.f_code
        names.append(f"{'/'.join(code.co_filename.split('/')[-2:])}:{code.co_qualname}")
        frame = frame.f_back
    return ";".join(reversed(names))
