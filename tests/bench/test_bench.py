"""The bench itself, with numbers too small to be evidence."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.programs, pytest.mark.trials]

ROOT = Path(__file__).resolve().parents[2]


def test_a_quick_run_measures_every_scenario_on_both_sides_without_an_error(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    run = subprocess.run(
        [sys.executable, ROOT / "bench/run", "--quick", "--json", file],
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    figures = json.loads(file.read_text())
    scenarios = figures["scenarios"]
    assert set(scenarios) == {"overhead", "throughput", "concurrency", "stream"}
    for scenario in scenarios.values():
        for side in ("limit", "waymark"):
            assert scenario["errors"] == []
            assert scenario[side]["wall_ms"] > 0
            assert scenario[side]["pss_mb"] > 20
            assert scenario[side]["prompt_tokens"] > 100, "every turn calls the model three times"
    assert scenarios["concurrency"]["waymark"]["of_ideal"] >= 1, (
        "three calls of a model cannot be faster than the model"
    )
    assert scenarios["stream"]["waymark"]["lag_p50_ms"] > 0
    assert "| overhead | wall ms per turn |" in run.stdout
    assert figures["growth"]["errors"] == []
    assert figures["growth"]["ratio"] > 0


def test_a_quick_run_with_a_budget_works_too() -> None:
    command = [sys.executable, str(ROOT / "bench/run"), "--quick", "--budget", "--only", "overhead"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert run.returncode == 0, run.stderr
    assert "| overhead | wall ms per turn |" in run.stdout
