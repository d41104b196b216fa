"""F16: those who look on lose their connection and take the events up again where they were."""

import contextlib
import http.client
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from random import Random
from urllib.parse import urlsplit

from tests.faults.door import Door, Goal
from tests.faults.rules import LOST, REPEATED, Violation
from tests.faults.site import Site
from tests.faults.trial import Tally, judged

type Event = tuple[str, str]

SILENT_SECONDS, PATIENCE_SECONDS = 0.5, 30.0


class Viewer(ABC):
    """Somebody who looks on from now until told to finish. With `dice` the connection is lost early, every time.

    lost: how often it was.
    """

    def __init__(self, door: Door, goal: Goal, dice: Random | None = None) -> None:
        self.lost = 0
        self._door, self._goal, self._dice = door, goal, dice
        self._last = door.cursor(goal)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Stop once the last event has been seen and none has come for a while."""
        until, tip = time.monotonic() + PATIENCE_SECONDS, ""
        while time.monotonic() < until and (tip != self._door.cursor(self._goal) or self._last != tip):
            tip = self._door.cursor(self._goal)
            time.sleep(SILENT_SECONDS)
        self._over.set()
        self._thread.join(20)

    @abstractmethod
    def _listen(self) -> None:
        """Take up the events after `_last` and keep that up to date, until the connection is lost or all is over."""

    def _follow(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._listen()
            self.lost += 1


class Follower(Viewer):
    """A device that reads a goal's event stream.

    seen: what came, as (id, data), without greetings.
    """

    def __init__(self, door: Door, goal: Goal, dice: Random | None = None) -> None:
        self.seen: list[Event] = []
        super().__init__(door, goal, dice)

    def _listen(self) -> None:
        where = urlsplit(self._door.address)
        assert where.hostname
        link = http.client.HTTPConnection(where.hostname, where.port, timeout=2)
        headers = {"Authorization": f"Bearer {self._door.token}", "Last-Event-ID": self._last}
        link.request("GET", f"/api/v1/goals/{self._goal.id}/events", headers=headers)
        response = link.getresponse()
        try:
            length = self._dice.randint(1, 6000) if self._dice else None
            for event_id, kind, data in _frames(response, length):
                self._last = event_id
                if kind != "hello":
                    self.seen.append((event_id, data))
                if self._over.is_set():
                    return
        finally:
            link.close()


def _frames(response: http.client.HTTPResponse, length: int | None) -> Iterator[tuple[str, str, str]]:
    """Whole frames; what is cut off after `length` bytes has not been seen."""
    fields: dict[str, str] = {}
    for line in response:
        if length is not None:
            length -= len(line)
            if length < 0:
                return
        text = line.decode().rstrip("\n")
        if text:
            name, _, value = text.partition(": ")
            fields[name] = value
        elif "id" in fields:
            yield fields["id"], fields["event"], fields["data"]
            fields = {}


def connection_lost_and_resumed(site: Site, rounds: int, dice: Random) -> Tally:
    """F16: one device loses its connection all the time, the other never; both must have seen the same."""
    goals, found, breaks = site.goals(2), list[Violation](), 0
    with site.worker():
        for goal in goals:
            steady, unsteady = Follower(site.door, goal), Follower(site.door, goal, Random(dice.random()))
            for _ in range(rounds):
                site.door.send(goal, "jot+put@0.1 mail@0.1 peek end@0.1")
                site.quiet([goal])
            for follower in (steady, unsteady):
                follower.finish()
            wanted, seen = steady.seen, unsteady.seen
            breaks += unsteady.lost
            found += [Violation(LOST, "an event is missing", data) for data in _without(wanted, seen)]
            found += [Violation(REPEATED, "an event came twice", data) for data in _without(seen, wanted)]
            if not wanted or not breaks:
                found.append(Violation(LOST, "no event came, or no connection was lost", goal.id))
    remark = f"{breaks} lost connections"
    return judged(site, "F16 event stream resumed", goals, rounds * len(goals), remark=remark, also=found)


def _without(some: list[Event], others: list[Event]) -> list[str]:
    left = list(some)
    for each in others:
        with contextlib.suppress(ValueError):
            left.remove(each)
    return [f"{event_id} {data[:80]}" for event_id, data in left]
