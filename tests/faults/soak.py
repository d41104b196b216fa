"""F17: all of it, in an order that a seed decides, while people go on talking.

python -m tests.faults.soak --minutes 10 --seed 7
"""

import argparse
import re
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random

from tests.children import Child
from tests.faults.door import Goal
from tests.faults.kills import POINTS
from tests.faults.people import approved_until_quiet
from tests.faults.proxy import Cut, Mode
from tests.faults.site import LEASE, Site
from tests.faults.trial import Tally, endings, judged

TALKERS, WORKERS = 12, 3
WORDS = ["jot", "put", "mail", "peek", "jot+mail", "put~0.2", "mail~0.3", "peek@0.2", "fail", "mail*3~0.1", "end@0.3"]


class Soak:
    """Workers are replaced as they go; those with an even number reach the servers through the proxies."""

    def __init__(self, site: Site, dice: Random) -> None:
        self.site, self.dice = site, dice
        self.workers: list[Child] = []
        self.done: Counter[str] = Counter()
        self.faults: list[Callable[[], None]] = [
            self.kill, self.kill, self.term, self.freeze, self.arm, self.flush, self.end_sessions, self.cut, self.cut,
            self.swallow, self.reset, self.restart_valkey, self.restart_postgres,
        ]  # fmt: skip

    def step(self) -> None:
        """Have enough workers, wait a moment, break something."""
        self.workers = [worker for worker in self.workers if not worker.is_dead()]
        while len(self.workers) < WORKERS:
            self.workers.append(self.site.start("worker", fragile=len(self.workers) % 2 == 0)[0])
        time.sleep(self.dice.uniform(0.2, 2))
        fault = self.dice.choice(self.faults)
        self.done[fault.__name__] += 1
        fault()

    def some(self) -> Child:
        return self.dice.choice(self.workers)

    def kill(self) -> None:
        self.some().kill()

    def term(self) -> None:
        self.some().send(signal.SIGTERM)

    def freeze(self) -> None:
        frozen = self.some()
        frozen.send(signal.SIGSTOP)
        time.sleep(self.dice.uniform(0.2, LEASE * 1.5))
        frozen.send(signal.SIGCONT)

    def arm(self) -> None:
        point = f"{self.dice.choice(POINTS)}:{self.dice.randint(1, 5)}"
        self.workers.append(self.site.start("worker", point=point)[0])

    def flush(self) -> None:
        self.site.redis.flushall()

    def end_sessions(self) -> None:
        self.site.database.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name LIKE 'worker%' AND random() < 0.5"
        )

    def cut(self) -> None:
        after = bool(self.dice.getrandbits(1))
        self.site.to_postgres.cuts.append(Cut(re.compile(b'"seq"|COMMIT'), after=after))

    def swallow(self) -> None:
        proxy = self.dice.choice([self.site.to_postgres, self.site.to_valkey, self.site.to_model])
        proxy.mode = Mode.HOLE
        time.sleep(self.dice.uniform(0.2, LEASE * 1.5))
        proxy.heal()

    def reset(self) -> None:
        self.dice.choice([self.site.to_postgres, self.site.to_valkey, self.site.to_model]).reset()

    def restart_valkey(self) -> None:
        self.site.end(self.site.valkey, signal.SIGKILL)
        time.sleep(self.dice.uniform(0, 1))
        self.site.spawn(self.site.valkey)

    def restart_postgres(self) -> None:
        self.site.end(self.site.postgres, self.dice.choice([signal.SIGINT, signal.SIGQUIT]))
        self.site.spawn(self.site.postgres)


def soaked(site: Site, seconds: int, dice: Random) -> Tally:
    """F17: break things for that many seconds, then let all come to rest."""
    goals, over, said = site.goals(TALKERS), threading.Event(), list[str]()
    soak, until = Soak(site, dice), time.monotonic() + seconds
    with ThreadPoolExecutor(TALKERS) as people:
        try:
            talks = [people.submit(_talk, site, goal, Random(dice.random()), over, said) for goal in goals]
            while time.monotonic() < until:
                soak.step()
        finally:
            over.set()
        site.heal()
        with site.worker():
            for talk in talks:
                talk.result()
            approved_until_quiet(site, goals, 120)  # mail that repeats one of unknown outcome waits for a person
    for worker in soak.workers:
        worker.send(signal.SIGCONT)
        worker.kill()
    return judged(site, f"F17 soak, {soak.done.total()} faults", goals, len(said), remark=endings(site, goals))


def _talk(site: Site, goal: Goal, dice: Random, over: threading.Event, said: list[str]) -> None:
    while not over.is_set():
        plan = " ".join(dice.choices(WORDS, k=dice.randint(1, 5)))
        run = site.door.send(goal, plan).run
        said.append(plan)
        over.wait(dice.expovariate(1))
        if run and dice.random() < 0.1:
            site.door.stop(run)


def main() -> int:
    parser = argparse.ArgumentParser(prog="bin/test soak", description="Break things at random and look what is left.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with Site() as site:
        tally = soaked(site, round(options.minutes * 60), Random(options.seed))
    print(dict(zip(Tally.HEAD, tally.row(), strict=True)))
    for violation in tally.found:
        print(*violation)
    return int(bool(tally.found))


if __name__ == "__main__":
    sys.exit(main())
