"""Makes .venv and installs a lock file into it; does nothing when that was done before. Standard library only.

usage: install.py requirements.txt
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
# There while packages are being installed: when it is found at a start, the environment may be broken.
UNFINISHED = VENV / ".unfinished"
OLDEST = (3, 12)
LINE_SECONDS = 10.0  # between two lines of progress where there is no terminal


def main(name: str) -> int:
    requirements = ROOT / name
    with open(requirements, "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second start waits for the first one's installation
        stamp = VENV / f".{name}.installed"
        wanted = _fingerprint(requirements)
        if stamp.exists() and stamp.read_text() == wanted and not UNFINISHED.exists() and PYTHON.exists():
            return 0
        if UNFINISHED.exists() or not _works():
            _make()
        code = _install(requirements)
        if code == 0:
            stamp.write_text(wanted)
        return code


def _fingerprint(requirements: Path) -> str:
    """The lock file's content and where the environment lies: it does not work after it was moved."""
    return hashlib.sha256(requirements.read_bytes() + str(VENV).encode()).hexdigest()


def _works() -> bool:
    """Whether there is an environment with a Python that is new enough, belongs here and has pip."""
    check = f"import sys, pip; sys.exit(sys.version_info < {OLDEST} or sys.prefix != {str(VENV)!r})"
    try:
        return subprocess.run([PYTHON, "-c", check], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _make() -> None:
    shutil.rmtree(VENV, ignore_errors=True)
    print(f"  Making {VENV} with Python {sys.version_info.major}.{sys.version_info.minor} …", flush=True)
    VENV.mkdir()
    UNFINISHED.touch()
    venv.create(VENV, with_pip=True)


def _install(requirements: Path) -> int:
    """Install exactly what the lock file says, checked by hash. Returns pip's exit code."""
    total = sum(line[:1].isalnum() for line in requirements.read_text().splitlines())
    UNFINISHED.touch()
    command = [str(PYTHON), "-m", "pip", "install", "--require-hashes", "--no-deps", "--no-input", "--progress-bar=off"]
    command += ["--disable-pip-version-check", "--requirement", str(requirements)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        lines: list[str] = []
        reader = threading.Thread(target=_read, args=(pip, lines), daemon=True)
        reader.start()
        _show(reader, lines, total)
    if pip.returncode != 0:
        print("".join(lines[-30:]), file=sys.stderr)
        print("Installing failed; the lines above say why. Start again to try again.", file=sys.stderr)
        return pip.returncode
    UNFINISHED.unlink()
    return 0


def _read(pip: subprocess.Popen[str], lines: list[str]) -> None:
    assert pip.stdout is not None
    for line in pip.stdout:
        lines.append(line)


def _show(reader: threading.Thread, lines: list[str], total: int) -> None:
    """While pip talks: one line that counts packages and seconds, or one now and then where there is no terminal."""
    began = shown = time.monotonic()
    terminal = sys.stdout.isatty()
    while reader.is_alive():
        reader.join(0.2)
        now = time.monotonic()
        text = f"  {_progress(lines, total)}, {now - began:.0f} s"
        if terminal:
            print(f"\r{text}\033[K", end="", flush=True)
        elif now - shown > LINE_SECONDS:
            print(text, flush=True)
            shown = now
    print("\r\033[K" if terminal else "", f"  Packages installed, {time.monotonic() - began:.0f} s", sep="", flush=True)


def _progress(lines: list[str], total: int) -> str:
    if any(line.startswith("Installing collected") for line in lines):
        return "Installing packages"
    found = sum(line.startswith(("Collecting ", "Requirement already satisfied")) for line in lines)
    return f"Fetching packages {found}/{total}"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
