"""bin/install.py on a lock file without packages: when it makes the environment, and when it leaves it alone."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.config.running import ROOT


def install(root: Path) -> str:
    command = [sys.executable, str(root / "bin" / "install.py"), "requirements.txt"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.faults
def test_a_broken_environment_is_made_anew_and_a_good_one_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "bin" / "install.py", tmp_path / "bin")
    (tmp_path / "requirements.txt").write_text("")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to("/gone")

    assert "Making" in install(tmp_path)
    assert install(tmp_path) == ""

    (tmp_path / "requirements.txt").write_text("# changed\n")
    assert "Making" not in (output := install(tmp_path))
    assert "Packages installed" in output

    (tmp_path / ".venv" / ".unfinished").touch()  # as after kill -9 during an installation
    assert "Making" in install(tmp_path)


@pytest.mark.parametrize("others", [["python3"], ["python3", "python3.13"]])
def test_a_python_that_is_too_new_or_does_not_start_is_named(tmp_path: Path, others: list[str]) -> None:
    for name in ("ls", "sort", "tail", "sh"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    says = {
        "python3": '[ "$1" = -V ] && echo Python 3.15.0; [ "$2" = "" ]',
        "python3.13": "echo no libpython >&2; exit 127",
    }
    for name in others:
        (tmp_path / name).write_text(f"#!/bin/sh\n{says[name]}\n")
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    command = [str(tmp_path / "sh"), str(ROOT / "bin" / "find-python")]
    found = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert found.returncode == 1
    assert "needs Python 3.12, 3.13 or 3.14; python3 here is Python 3.15.0." in found.stderr
    assert ("python3.13, which does not start: no libpython" in found.stderr) == ("python3.13" in others)
