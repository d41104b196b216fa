"""What a viewer has heard of a thread's run, and what becomes of one that falls silent.

A worker that dies between its last commit and the word of it tells nobody, and whoever looks on would see its run at
work for ever. So a live run of which nothing is heard is looked up, and what was not told of it is told to all.
"""

from typing import Final
from uuid import UUID

import orjson

from agents.live.announce import announce_run
from agents.live.keys import kind_of
from memory.models import LIVE, AgentRun, RunStatus

SILENT_SECONDS: Final = 15
"""After so long a viewer looks."""


class Heard:
    """The state of a thread's run as it was told last. Ask `begin` and `look` off the event loop."""

    def __init__(self, thread_id: UUID) -> None:
        self._thread_id = thread_id
        self._run = UUID(int=0)
        self._status = ""

    @property
    def is_live(self) -> bool:
        return self._status in LIVE

    def begin(self) -> None:
        """Take it from the database."""
        run = AgentRun.objects.live().filter(thread=self._thread_id).first()
        self._run, self._status = (run.pk, run.status) if run else (self._run, "")

    def hear(self, payload: bytes) -> None:
        """Take it from an event, if that is what it is about."""
        if kind_of(payload) == "run":
            event = orjson.loads(payload)
            self._run, self._status = UUID(event["run"]), event["status"]

    def look(self) -> None:
        """Tell what has become of the run. One that is at work speaks for itself."""
        run = AgentRun.objects.select_related("thread").filter(pk=self._run).first()
        status = run.status if run else ""
        if run and status not in (self._status, RunStatus.RUNNING):
            announce_run(run)
        self._status = status
