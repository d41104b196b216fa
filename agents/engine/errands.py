"""Jobs beside the runs: summaries, measures, look-ups. They wait for the same models and servers as runs do, so they
have a few threads of their own, which runs never wait for, and a user has at most one at work in each worker. Whoever
has a hundred sessions archived at once waits for them alone."""

import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from rq.job import Job


class Errands:
    """
    most: how many at once. perform: does one; it never raises.
    """

    def __init__(self, most: int, perform: Callable[[Job], None]) -> None:
        self._perform = perform
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="errand")
        self._lock = threading.Lock()
        self._waiting: dict[int | None, dict[str, Job]] = {}  # of users who have one at work, or soon
        self._under_way: dict[int | None, str] = {}

    def put(self, job: Job) -> None:
        """Do this job as soon as its user's turn comes, unless the same one waits or is under way already."""
        user: int | None = job.meta.get("user")
        with self._lock:
            is_first = user not in self._waiting
            if self._under_way.get(user) != _name(job):
                self._waiting.setdefault(user, {}).setdefault(_name(job), job)
        if is_first:
            self._threads.submit(self._go, user)

    def close(self) -> list[Job]:
        """Begin no more; returns those that had not begun."""
        with self._lock:
            left = [job for jobs in self._waiting.values() for job in jobs.values()]
            self._waiting.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)
        return left

    def _go(self, user: int | None) -> None:
        """Do the user's next one, then stand at the end of the line again: everybody's turn comes."""
        with self._lock:
            if not (jobs := self._waiting.get(user)):
                self._waiting.pop(user, None)
                return
            job = jobs.pop(next(iter(jobs)))
            self._under_way[user] = _name(job)
        self._perform(job)
        with self._lock:
            del self._under_way[user]
        with contextlib.suppress(RuntimeError):  # closed meanwhile
            self._threads.submit(self._go, user)


def _name(job: Job) -> str:
    return f"{job.func_name}{job.args}"
