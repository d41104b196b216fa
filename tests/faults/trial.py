"""One fault, tried a number of times, and what the oracle says of it in the end."""

import statistics
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.faults import oracle
from tests.faults.door import Goal
from tests.faults.rules import HISTORY, LOST, REPEATED, STUCK, Violation
from tests.faults.site import Site

KINDS = (LOST, REPEATED, STUCK, HISTORY)


@dataclass
class Tally:
    """
    repetitions: how many runs went through the fault.
    unknown: tool calls whose outcome nobody knows, which is allowed.
    recoveries: seconds from the fault until a worker took the run (up again).
    remark: a figure of this fault alone.
    took: seconds for all of it.
    """

    fault: str
    repetitions: int
    found: Sequence[Violation]
    unknown: int = 0
    recoveries: list[float] = field(default_factory=list)
    remark: str = ""
    took: float = 0

    HEAD = ("fault", "runs", *KINDS, "unknown", "recovery p50", "p95", "took", "")

    def row(self) -> tuple[str, ...]:
        counts = oracle.counted(self.found)
        figures = [self.repetitions, *(counts[kind] for kind in KINDS), self.unknown]
        return (self.fault, *map(str, figures), *self._seconds(), f"{self.took:.0f} s", self.remark)

    def _seconds(self) -> tuple[str, str]:
        if not self.recoveries:
            return "", ""
        return f"{statistics.median(self.recoveries):.2f} s", f"{percentile(self.recoveries, 95):.2f} s"


type Scenario = Callable[[Site, int, Random], Tally]


def percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def judged(
    site: Site,
    fault: str,
    goals: Collection[Goal],
    repetitions: int,
    recoveries: Collection[float] = (),
    remark: str = "",
    also: Sequence[Violation] = (),
) -> Tally:
    """All is quiet, or has had the time to be: ask the oracle. `also` is what the scenario has found by itself."""
    threads = [goal.thread for goal in goals]
    accepted = [client for thread, client in site.door.accepted if thread in threads]
    found = [*also, *oracle.violations(site.database, site.sink, threads, accepted)]
    found += [Violation(HISTORY, words, "the model's server refused it") for words in site.model.violations]
    site.model.violations.clear()
    return Tally(fault, repetitions, found, oracle.unknown(site.database, threads), list(recoveries), remark)


def taken_up(site: Site, goals: Collection[Goal], since: float) -> list[float]:
    """How long after `since` (time of the wall) a worker took each run that was not over then. Seconds."""
    sql = """
        SELECT extract(epoch FROM min(c.at))::float - %(since)s FROM memory_agentrun r
        JOIN faults.claims c ON c.run_id = r.id AND c.at > to_timestamp(%(since)s)
        WHERE r.thread_id = ANY(%(threads)s) AND coalesce(r.finished_at, 'infinity') > to_timestamp(%(since)s)
        GROUP BY r.id"""
    wanted = {"since": since, "threads": [goal.thread for goal in goals]}
    return [row[0] for row in site.database.execute(sql, wanted).fetchall()]


def is_taken_up(site: Site, goals: Collection[Goal], since: float) -> bool:
    """Whether each of these goals has a run that a worker has taken since then, or none at all any more."""
    return not site.live(goals) or len(taken_up(site, goals, since)) >= len(goals)


def statuses(site: Site, goals: Collection[Goal]) -> dict[str, int]:
    """How many runs of these goals are in which state."""
    sql = "SELECT status, count(*) FROM memory_agentrun WHERE thread_id = ANY(%s) GROUP BY 1"
    return dict(site.database.execute(sql, [[goal.thread for goal in goals]]).fetchall())


def endings(site: Site, goals: Collection[Goal]) -> str:
    """How the runs of these goals ended, in words for the table."""
    return ", ".join(f"{count} {status}" for status, count in statuses(site, goals).items())
