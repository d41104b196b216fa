"""One scenario: rounds of the limit and of Waymark by turns, so that a noisy minute falls on both."""

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bench.batch import Batch, Order
from bench.processes import cpu_ms, pss_mb, tree_cpu_ms
from bench.scenarios import WARM_UP, Scenario
from bench.system import System

type Figures = dict[str, float]


@dataclass(slots=True)
class Side:
    """The rounds of one side, and the first of its errors."""

    rounds: list[Figures] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def median(self) -> Figures:
        return {name: statistics.median(each.get(name, 0) for each in self.rounds) for name in self.rounds[0]}


@dataclass(slots=True)
class Outcome:
    scenario: Scenario
    limit: Side = field(default_factory=Side)
    waymark: Side = field(default_factory=Side)

    @property
    def errors(self) -> list[str]:
        return [*self.limit.errors, *self.waymark.errors]

    def ratio(self, name: str) -> float | None:
        """The median over the rounds of Waymark's figure divided by the limit's of the same round."""
        pairs = zip(self.waymark.rounds, self.limit.rounds, strict=True)
        ratios = [ours[name] / theirs[name] for ours, theirs in pairs if ours.get(name) and theirs.get(name)]
        return statistics.median(ratios) if ratios else None


def measure(system: System, scenario: Scenario) -> Outcome:
    """Run all rounds of a scenario; every other round begins with the other side."""
    outcome = Outcome(scenario)
    outcome.waymark.errors += system.model.ask("pace", scenario.first_token, scenario.gap)
    for number in range(scenario.rounds):
        sides = [(_limit, outcome.limit), (_waymark, outcome.waymark)]
        for run, side in sides if number % 2 else reversed(sides):
            run(system, scenario, side)
            time.sleep(0.3)  # what the last run leaves to do belongs to nobody's figures
    outcome.waymark.errors += system.model.ask("pace", 0, 0)
    return outcome


def _limit(system: System, scenario: Scenario, side: Side) -> None:
    tokens = system.limit.ask("prompt_tokens")
    figures = _watched(system, scenario, side, lambda: cpu_ms([system.limit.pid]), [system.limit.pid], _ask_limit)
    figures["prompt_tokens"] = (system.limit.ask("prompt_tokens") - tokens) / scenario.turns


def _waymark(system: System, scenario: Scenario, side: Side) -> None:
    system.client.ask("open", system.client.ask("make_goals", scenario.turns))
    tokens = system.prompt_tokens()
    before = {name: cpu_ms([pid]) for name, pid in system.parts.items()}
    pids = list(system.parts.values())
    with system.profiled(scenario != WARM_UP):
        figures = _watched(system, scenario, side, lambda: cpu_ms(pids), pids, _ask_waymark)
    figures |= {f"cpu_{name}": (cpu_ms([pid]) - before[name]) / scenario.turns for name, pid in system.parts.items()}
    figures |= {f"pss_{name}": pss_mb([pid]) for name, pid in system.parts.items()}
    time.sleep(0.2)  # the last runs are settled after their answer was seen
    figures["prompt_tokens"] = (system.prompt_tokens() - tokens) / scenario.turns
    side.rounds[-1] = figures


def _ask_limit(system: System, order: Order, meanwhile: Callable[[], None]) -> Batch:
    return system.limit.batch(order, meanwhile)


def _ask_waymark(system: System, order: Order, meanwhile: Callable[[], None]) -> Batch:
    return system.client.batch(order, meanwhile)


def _watched(
    system: System,
    scenario: Scenario,
    side: Side,
    used: Callable[[], float],
    pids: Sequence[int],
    ask: Callable[[System, Order, Callable[[], None]], Batch],
) -> Figures:
    """Run one round of one side and keep its figures."""
    peak = [pss_mb(pids)]
    watch_memory = scenario.at_once > 1
    cpu, postgres = used(), tree_cpu_ms(system.postgres)
    batch = ask(
        system, Order(scenario.turns, scenario.at_once), lambda: peak.append(pss_mb(pids)) if watch_memory else None
    )
    cpu, postgres = used() - cpu, tree_cpu_ms(system.postgres) - postgres
    figures = _figures(batch, scenario) | {
        "cpu_ms": cpu / scenario.turns,
        "postgres_cpu_ms": postgres / scenario.turns,
        "pss_mb": max(*peak, pss_mb(pids)),
        "postgres_pss_mb": pss_mb([system.postgres]),
    }
    side.rounds.append(figures)
    side.errors += batch.errors
    return figures


def _figures(batch: Batch, scenario: Scenario) -> Figures:
    figures = {
        "wall_ms": statistics.median(batch.walls or [0]),
        "wall_p95_ms": _percentile(batch.walls, 0.95),
        "turns_per_second": len(batch.walls) / batch.seconds,
        "first_event_ms": statistics.median(batch.first_events or [0]),
        "first_event_p95_ms": _percentile(batch.first_events, 0.95),
        "errors": len(batch.errors),
    }
    if scenario.ideal_seconds:
        figures["of_ideal"] = batch.seconds / scenario.ideal_seconds
    if batch.lags:
        figures |= {"lag_p50_ms": statistics.median(batch.lags), "lag_p95_ms": _percentile(batch.lags, 0.95)}
    return figures


def _percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)] if values else 0
