"""Every fault, many times, and one table.

bin/test faults                  a few of each
bin/test faults --full           as many as the contract asks for
bin/test faults --only F1,F9     some
"""

import argparse
import sys
import time
from collections.abc import Iterator
from functools import partial
from random import Random
from typing import NamedTuple

from tests.faults import (
    archives,
    ends,
    hangs,
    kills,
    links,
    mutations,
    outages,
    pages,
    people,
    poison,
    races,
    refusals,
    soak,
    viewers,
)
from tests.faults.site import Site
from tests.faults.trial import Scenario, Tally


class Entry(NamedTuple):
    """A scenario and its rounds: few, and in full. What a round is, the scenario says."""

    name: str
    scenario: Scenario
    few: int
    full: int


def entries() -> Iterator[Entry]:
    """In the order of the contract."""
    yield from _killed()
    yield from _links_and_leases()
    yield from _races()
    yield from _servers()
    yield from _people_and_models()


def _killed() -> Iterator[Entry]:
    for point in ("D0.before", "D0.after"):
        yield Entry("F1", partial(kills.web_killed_at, point), 1, 13)
    for point in (*kills.POINTS, *kills.WAITING_POINTS):
        yield Entry("F1", partial(kills.worker_killed_at, point), 1, 10)
    for effect in kills.EFFECTS:
        yield Entry("F1", partial(kills.worker_killed_in, effect), 1, 10)
    for point in people.POINTS:
        yield Entry("F1", partial(people.worker_killed_at, point), 1, 8)
    for point in ("decision.before", "decision.after"):
        yield Entry("F1", partial(people.web_killed_at, point), 1, 8)
    for point in archives.POINTS:
        yield Entry("F1", partial(archives.archiver_killed_at, point), 1, 6)


def _links_and_leases() -> Iterator[Entry]:
    for side in ("before", "after"):
        yield Entry("F2", partial(links.commit_cut, side), 3, 20)
    yield Entry("F2", links.model_link_reset, 2, 15)
    yield Entry("F3", kills.worker_frozen, 2, 15)
    yield Entry("F3", ends.worker_frozen_before_its_last_write, 1, 10)
    yield Entry("F4", links.postgres_black_hole, 1, 6)
    yield Entry("F5", hangs.tool_hangs, 2, 12)
    yield Entry("F5", hangs.local_tool_hangs, 2, 12)
    yield Entry("F5", hangs.model_hangs, 2, 12)


def _races() -> Iterator[Entry]:
    yield Entry("F6", races.workers_race, 2, 30)
    yield Entry("F7", races.same_message_at_once, 2, 30)
    yield Entry("F7", races.message_around_the_end, 40, 200)
    for barrier in ends.BARRIERS:
        yield Entry("F7", partial(ends.message_at, barrier), 1, 6)
    yield Entry("F7", people.message_as_a_run_waits, 3, 18)
    yield Entry("F7", races.message_at_every_point, 1, 15)
    yield Entry("F7", races.two_messages_at_once, 6, 100)
    yield Entry("F7", races.bell_before_the_row, 2, 20)


def _servers() -> Iterator[Entry]:
    yield Entry("F8", outages.valkey_flushed, 1, 15)
    yield Entry("F8", outages.valkey_killed, 1, 15)
    yield Entry("F8", outages.viewers_without_valkey, 1, 10)
    yield Entry("F8", links.valkey_away_at_the_start, 1, 10)
    yield Entry("F8", links.valkey_link_lost, 2, 16)
    for how in ("fast", "immediate"):
        yield Entry("F9", partial(outages.postgres_restarted, how), 1, 5)
    yield Entry("F9", outages.sessions_ended, 1, 10)
    yield Entry("F10", kills.deployed, 5, 50)


def _people_and_models() -> Iterator[Entry]:
    yield Entry("F11", kills.stopped, 2, 25)
    yield Entry("F11", kills.stopped_at, 4, 28)
    yield Entry("F11", people.approved_at_once, 2, 20)
    yield Entry("F11", people.decided_at_once, 4, 32)
    yield Entry("F12", archives.archivers_and_writer, 4, 20)
    yield Entry("F13", refusals.refused, 1, 5)
    yield Entry("F13", refusals.hung, 1, 3)
    yield Entry("F14", poison.poisoned, 10, 300)
    yield Entry("F16", viewers.connection_lost_and_resumed, 2, 20)
    yield Entry("F16", pages.connection_lost_and_resumed, 2, 20)
    yield Entry("F17", soak.soaked, 20, 240)
    for mutation in mutations.MUTATIONS:
        yield Entry("F18", partial(mutations.noticed, mutation), 1, 3)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bin/test faults", description="Break everything and look what is left.")
    parser.add_argument("--full", action="store_true", help="as many repetitions as the contract asks for")
    parser.add_argument("--only", default="", help="these faults, such as F1,F9")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    only = set(filter(None, options.only.split(",")))
    tallies: list[Tally] = []
    try:
        with Site() as site:
            for entry in (entry for entry in entries() if not only or entry.name in only):
                tallies.append(_tried(site, entry, entry.full if options.full else entry.few, options.seed))
    finally:
        print("\n" + table(tallies))
    return int(any(tally.found for tally in tallies))


def _tried(site: Site, entry: Entry, rounds: int, seed: int) -> Tally:
    began = time.monotonic()
    tally = entry.scenario(site, rounds, Random(seed))
    site.heal()
    tally.took = time.monotonic() - began
    print(f"{tally.fault}: {len(tally.found)} violations, {tally.took:.0f} s", flush=True)
    for violation in tally.found:
        print("   ", *violation, flush=True)
    return tally


def table(tallies: list[Tally]) -> str:
    """One line a fault, in columns."""
    rows = [Tally.HEAD, *(tally.row() for tally in tallies)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


if __name__ == "__main__":
    sys.exit(main())
