"""bin/test among commands of our own: it succeeds when every stage does, else it fails and shows why."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.config.running import ROOT

COMMANDS = ("ruff", "lint-imports", "python", "mypy", "pytest")


def check(root: Path, fails: str = "") -> subprocess.CompletedProcess[str]:
    commands = root / ".venv" / "bin"
    commands.mkdir(parents=True)
    for name in COMMANDS:
        script = commands / name
        script.write_text(f"#!/bin/sh\necho words of {name}\nexit {int(name == fails)}\n")
        script.chmod(0o755)
    (root / "bin").mkdir()
    shutil.copy(ROOT / "bin" / "test", root / "bin")
    (root / "bin" / "install.py").touch()
    find = root / "bin" / "find-python"
    find.write_text("#!/bin/sh\ncommand -v python3\n")
    find.chmod(0o755)
    environ = {**os.environ, "TMPDIR": str(root)}
    return subprocess.run([root / "bin" / "test"], capture_output=True, text=True, env=environ, timeout=60)


def test_the_checks_succeed_when_every_stage_does(tmp_path: Path) -> None:
    ended = check(tmp_path)

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1].strip() == "types"
    assert not list(tmp_path.glob("tmp.*"))


@pytest.mark.parametrize(
    ("fails", "stage"),
    [("ruff", "lint"), ("lint-imports", "import contracts"), ("pytest", "tests"), ("mypy", "types")],
)
def test_the_checks_fail_when_a_stage_does(tmp_path: Path, fails: str, stage: str) -> None:
    ended = check(tmp_path, fails)

    assert ended.returncode == 1
    assert f'"{stage}" failed' in ended.stderr
    assert f"words of {fails}" in ended.stdout + ended.stderr
