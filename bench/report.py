"""The figures as a table for people and as JSON for programs."""

import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from bench.growth import LONG, SHORT, Growth
from bench.measure import Outcome

# (name, label, in which scenarios)
ROWS = (
    ("wall_ms", "wall ms per turn", "overhead stream"),
    ("wall_p95_ms", "wall ms per turn, p95", "overhead"),
    ("cpu_ms", "CPU ms per turn", "overhead throughput concurrency"),
    ("postgres_cpu_ms", "CPU ms per turn, PostgreSQL", "overhead throughput"),
    ("turns_per_second", "turns per second", "throughput"),
    ("of_ideal", "× of the ideal", "concurrency"),
    ("first_event_ms", "first event ms", "stream"),
    ("first_event_p95_ms", "first event ms, p95", "stream"),
    ("lag_p50_ms", "lag per token ms, p50", "stream"),
    ("lag_p95_ms", "lag per token ms, p95", "stream"),
    ("pss_mb", "peak PSS MB", "overhead throughput concurrency"),
    ("prompt_tokens", "prompt tokens per turn", "overhead"),
    ("errors", "errors", "overhead throughput concurrency stream"),
)
# A first event means another thing on either side, and memory too: no ratios.
NO_RATIO = {"first_event_ms", "first_event_p95_ms", "pss_mb", "errors", "prompt_tokens"}


def table(outcomes: Sequence[Outcome]) -> str:
    lines = ["| scenario | figure | limit | Waymark | ratio |", "|---|---|--:|--:|--:|"]
    for outcome in outcomes:
        limit, waymark = outcome.limit.median(), outcome.waymark.median()
        for name, label, scenarios in ROWS:
            if outcome.scenario.name in scenarios.split() and name in waymark:
                ratio = None if name in NO_RATIO else outcome.ratio(name)
                ours, theirs = _number(waymark[name]), _number(limit.get(name))
                lines.append(f"| {outcome.scenario.name} | {label} | {theirs} | {ours} | {_number(ratio)} |")
    return "\n".join(lines)


def parts(outcomes: Sequence[Outcome]) -> str:
    """How Waymark's CPU time per turn, and its memory after the turns, divide among its processes."""
    lines = []
    for outcome in outcomes:
        median = outcome.waymark.median()
        for prefix, title in (("cpu_", "CPU ms per turn"), ("pss_", "PSS MB")):
            wanted = [name for name in median if name.startswith(prefix) and name not in ("cpu_ms", "pss_mb")]
            shares = ", ".join(f"{name.removeprefix(prefix)} {median[name]:.1f}" for name in wanted)
            lines.append(f"{outcome.scenario.name}: {title}: {shares}")
    return "\n".join(lines)


def growth(figures: Growth | None) -> str:
    if figures is None:
        return ""
    short, long = figures.short, figures.long
    rows = ("CPU", short.cpu, long.cpu, figures.ratio), ("wall", short.wall, long.wall, figures.wall_ratio)
    return "\n".join(
        f"growth: {name} ms per step: {statistics.median(few):.1f} at {SHORT} entries, "
        f"{statistics.median(many):.1f} at {LONG:,}: {ratio:.2f} ×"
        for name, few, many, ratio in rows
    )


def document(outcomes: Sequence[Outcome], growth: Growth | None) -> dict[str, Any]:
    return {
        "growth": asdict(growth) | {"ratio": growth.ratio, "wall_ratio": growth.wall_ratio} if growth else None,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "scenarios": {
            outcome.scenario.name: {
                "limit": outcome.limit.median(),
                "waymark": outcome.waymark.median(),
                "ratios": {name: outcome.ratio(name) for name in outcome.waymark.median() if name not in NO_RATIO},
                "errors": outcome.errors[:20],
                "rounds": {"limit": outcome.limit.rounds, "waymark": outcome.waymark.rounds},
                "of": asdict(outcome.scenario),
            }
            for outcome in outcomes
        },
    }


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.2f}" if value < 10 else f"{value:.1f}"
