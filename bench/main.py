"""`bench/run`: Waymark beside the limit, in one run."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import orjson

from bench import hotspots, report
from bench.growth import Growth, measure_growth
from bench.measure import Outcome, measure
from bench.scenarios import SCENARIOS, WARM_UP, Scenario, tiny
from bench.system import System, started

ROOT = Path(__file__).resolve().parent.parent
GROWTH = "growth"


def main(arguments: Sequence[str]) -> int:
    """Return 0 when no turn failed."""
    options = _options(arguments)
    os.chdir(ROOT)  # the processes are started as modules from here
    scenarios = [each for each in SCENARIOS if not options.only or each.name in options.only]
    growth = None
    if options.quick:
        scenarios = [tiny(each) for each in scenarios]
    warm_up = tiny(WARM_UP) if options.quick else WARM_UP
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) if options.profile else None
        with started(folder, budget=options.budget) as system:
            outcomes = _measure_all(system, (warm_up, *scenarios))[1:]
            if not options.only or GROWTH in options.only:
                growth = _growth(system, options.quick)
        print(report.table(outcomes), report.parts(outcomes), report.growth(growth), sep="\n\n")
        if folder:
            print(hotspots.summary(folder, sum(each.turns * each.rounds for each in scenarios)))
    if options.json:
        options.json.write_bytes(orjson.dumps(report.document(outcomes, growth), option=orjson.OPT_INDENT_2))
    return _complain([error for outcome in outcomes for error in outcome.errors] + (growth.errors if growth else []))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench/run", description="Measure Waymark beside the limit of docs/performance.md."
    )
    names = [*(scenario.name for scenario in SCENARIOS), GROWTH]
    parser.add_argument("--only", action="append", choices=names, help="this scenario; may be given several times")
    parser.add_argument("--quick", action="store_true", help="a few turns each, to see that it works; no evidence")
    parser.add_argument("--budget", action="store_true", help="reserve every call in a monthly budget")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there, round by round")
    parser.add_argument(
        "--profile", action="store_true", help="say where the CPU time goes; the figures of such a run do not count"
    )
    return parser.parse_args(arguments)


def _measure_all(system: System, scenarios: Sequence[Scenario]) -> list[Outcome]:
    outcomes = []
    for scenario in scenarios:
        print(f"{scenario.name} (load {os.getloadavg()[0]:.1f}) …", file=sys.stderr, flush=True)
        outcomes.append(measure(system, scenario))
    return outcomes


def _growth(system: System, quick: bool) -> Growth:
    print(f"{GROWTH} (load {os.getloadavg()[0]:.1f}) …", file=sys.stderr, flush=True)
    return measure_growth(system, rounds=1, turns=2) if quick else measure_growth(system, rounds=6, turns=12)


def _complain(errors: Sequence[str]) -> int:
    for error in errors[:5]:
        print(error, file=sys.stderr)
    return 1 if errors else 0
