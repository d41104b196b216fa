"""What a turn costs when its conversation is long, beside one whose conversation is short.

Whole turns through the public API, of Waymark alone. What counts is CPU time, of Waymark's processes and of PostgreSQL.
The model's server passes over a long history, so that it takes no part in what grows.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import orjson
import psycopg

from bench.batch import Order
from bench.processes import cpu_ms, tree_cpu_ms
from bench.system import System

SHORT, LONG = 50, 5_000
STEPS = 3  # of a turn
GOALS = 4  # with 1.4 million characters each, when they are long
WORDS = "what was said " * 17  # about 240 characters, as in an ordinary conversation

SEED = """
INSERT INTO memory_historyentry (thread_id, seq, role, blocks)
SELECT goal.thread_id, seq, CASE seq %% 2 WHEN 1 THEN 'user' ELSE 'assistant' END, %(blocks)s
FROM goals_goal goal, generate_series(1, %(entries)s) AS seq WHERE goal.id = ANY(%(goals)s)
"""


@dataclass(slots=True)
class Steps:
    """Milliseconds per step, round by round: CPU time, with PostgreSQL's, and by the clock."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    def add(self, rounds: Sequence["Steps"]) -> None:
        self.cpu.append(statistics.mean(each.cpu[0] for each in rounds))
        self.wall.append(statistics.median(wall for each in rounds for wall in each.wall))


@dataclass(slots=True)
class Growth:
    short: Steps = field(default_factory=Steps)
    long: Steps = field(default_factory=Steps)
    errors: list[str] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        return _ratio(self.long.cpu, self.short.cpu)

    @property
    def wall_ratio(self) -> float:
        return _ratio(self.long.wall, self.short.wall)


def _ratio(long: Sequence[float], short: Sequence[float]) -> float:
    return statistics.median(one / other for one, other in zip(long, short, strict=True))


def measure_growth(system: System, rounds: int, turns: int) -> Growth:
    """Run rounds of turns in a few goals with a short and with a long history. The first turn in each is not counted:
    it may find a worker that has not seen the conversation yet. More long ones than a worker keeps would be read anew
    each time."""
    growth = Growth()
    count = min(turns, GOALS)
    short, long = _seeded(system, count, SHORT), _seeded(system, count, LONG)
    _spent(system, short + long, growth)
    for number in range(rounds):
        sides = [(short, growth.short), (long, growth.long)]
        for goals, steps in sides if number % 2 else reversed(sides):
            steps.add([_spent(system, goals, growth) for _ in range(turns // count)])
    return growth


def _seeded(system: System, count: int, entries: int) -> list[str]:
    goals: list[str] = system.client.ask("make_goals", count)
    blocks = orjson.dumps([{"type": "text", "text": WORDS}]).decode()
    with psycopg.connect(system.database_url) as connection:
        connection.execute(SEED, {"blocks": blocks, "entries": entries, "goals": [UUID(goal) for goal in goals]})
    return goals


def _spent(system: System, goals: list[str], growth: Growth) -> Steps:
    """Run one turn in each goal, one after the other."""
    system.client.ask("open", goals)
    before = _used(system)
    batch = system.client.batch(Order(len(goals), 1), lambda: None)
    growth.errors += batch.errors
    cpu = (_used(system) - before) / len(goals) / STEPS
    return Steps([cpu], [wall / STEPS for wall in batch.walls])


def _used(system: System) -> float:
    return cpu_ms(system.parts.values()) + tree_cpu_ms(system.postgres)
