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
