"""Removing what commands have left behind."""

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

import structlog

log = structlog.get_logger(__name__)

# Of the system, because they get through whatever a command can make: folders that it has closed to us, which are
# opened first, and more of them in each other than a process may hold open.
_PROGRAMS: Final = (("/bin/chmod", "-R", "u+rwX"), ("/bin/rm", "-rf"))
_SECONDS: Final = 60.0


def removed(folder: Path) -> bool:
    """Remove a folder with all that is in it; returns whether nothing is left. What is, is logged."""
    shutil.rmtree(folder, ignore_errors=True)
    said = ""
    for program in _PROGRAMS if folder.exists() else ():
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            ended = subprocess.run(
                [*program, "--", str(folder)],
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_SECONDS,
                check=False,
            )
            said = ended.stderr.decode(errors="replace").strip()
    if folder.exists():
        log.warning("files of an agent that is gone cannot be removed", path=str(folder), why=said[:500])
    return not folder.exists()
