"""Whether the sandbox holds, tried on this machine: at the start of a worker and every few minutes (threat T13).

A command tries to do what none may. When one of these works, or nothing can be started, commands are withheld and the
reason is told; there is never a way to run them without the sandbox.
"""

import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import structlog
from django.conf import settings

from tools.cancel import CancelToken
from tools.sandbox.box import missing_program
from tools.sandbox.folder import Folder
from tools.sandbox.run import Ending, run

log = structlog.get_logger(__name__)

PROGRAMS: Final = ("python3", "pip", "pytest", "ruff", "node")
"""What agents like to use where it is there; of these they are told."""

_SECONDS: Final = 20.0
_PATIENCE: Final = 5.0
# Each line of its output is a name and what was found. Only a shell and what stands beside it are needed.
_PROBES: Final = r"""
echo user "$(id -u)"
echo root "$(ls / | tr '\n' ' ')"
echo networks "$(sed 1,2d /proc/net/dev | cut -d: -f1 | tr -d ' \n')"
echo processes "$(ls /proc | grep -c '^[0-9]')"
echo environment "$(tr '\0' '\n' < /proc/1/environ | grep -v '^PWD=' | wc -l)"
echo powers "$(sed -n 's/^CapEff:[[:space:]]*0*//p' /proc/self/status)"
echo rights "$(grep NoNewPrivs /proc/self/status | tr -dc '0-9')"
echo most "$(sed -n 's/^Max processes *\([0-9]*\).*/\1/p' /proc/self/limits)"
echo system "$(sed -n 's/^[^ ]* \/usr [^ ]* \(r[ow]\).*/\1/p' /proc/self/mounts)"
echo above "$( (: > /.waymark) 2>/dev/null && echo written || echo refused)"
echo devices "$( (: > /dev/.waymark) 2>/dev/null && echo written || echo refused)"
echo calls "$(perl -e 'CALLS' 2>/dev/null || echo untried)"
spaces=refused; unshare --user true 2>/dev/null && spaces=made; command -v unshare > /dev/null || spaces=untried
echo spaces "$spaces"
echo input "$(stat -Lc %t:%T /proc/self/fd/0)"
echo workspace "$(echo probe > probe && cat probe)"
echo programs "$(for each in PROGRAMS; do command -v "$each" > /dev/null && echo "$each"; done | tr '\n' ' ')"
setsid sleep 600 > /dev/null 2>&1 &
"""


@dataclass(frozen=True, slots=True)
class _Probe:
    name: str
    holds: Callable[[str], bool]
    broken: str


_NUMBERS: Final = {"x86_64": (319, 41), "aarch64": (279, 198)}  # of memfd_create and socket
_OUTSIDE: Final = frozenset({"etc", "bin", "sbin", "lib", "lib32", "lib64", "usr", "proc", "dev", "tmp", "workspace"})
_NULL: Final = "1:3"  # the numbers of /dev/null
_CHECKS: Final = (
    _Probe("user", lambda found: found not in ("", "0"), "commands would be root"),
    _Probe("root", lambda found: set(found.split()) <= _OUTSIDE | _given(), "commands would see more than the system"),
    _Probe("networks", lambda found: found in ("lo", ""), "commands would have a network"),
    _Probe("processes", lambda found: 0 < int(found or 0) < 12, "commands would see other processes"),
    _Probe("environment", lambda found: found == "0", "commands would see the worker's environment"),
    _Probe("powers", lambda found: found == "", "commands would have an administrator's powers"),
    _Probe("rights", lambda found: found == "1", "commands could gain rights"),
    _Probe(
        "most",
        lambda found: found == str(settings.WAYMARK_COMMAND_PROCESSES),
        "the number of processes would not be limited",
    ),
    _Probe("system", lambda found: found == "ro", "commands could change the system"),
    _Probe("above", lambda found: found == "refused", "commands could write beside the workspace"),
    _Probe("devices", lambda found: found == "refused", "commands could fill the memory by /dev"),
    # Without perl it is not tried; where there is no filter for this machine, the calls work.
    _Probe("calls", lambda found: found in ("11", "untried") or not _filtered(), "system calls would not be refused"),
    _Probe("spaces", lambda found: found == "refused", "commands could make namespaces of their own"),
    _Probe("input", lambda found: found == _NULL, "commands would read the worker's input"),
    _Probe("workspace", lambda found: found == "probe", "commands could not write into the workspace"),
)

_lock = threading.Lock()
_reason: str | None = None
_tried_at = 0.0
_programs: frozenset[str] | None = None


def reason() -> str:
    """Why no command can be run here, in a sentence; empty when they can. Tried now if it was not yet; runs do not wait
    for long for somebody else who tries it."""
    if _reason is not None:
        return _reason
    if not _lock.acquire(timeout=_PATIENCE):
        return "Commands are withheld: the sandbox is being tried."
    _lock.release()
    return renew()


def programs() -> frozenset[str] | None:
    """Which of `PROGRAMS` there were inside when it was tried last; None when it was not, or did not start."""
    return _programs


def renew() -> str:
    """Try the sandbox if that is due; returns as `reason`."""
    global _reason, _tried_at
    with _lock:
        pause = settings.WAYMARK_SANDBOX_CHECK_MINUTES * 60
        if _reason is None or time.monotonic() - _tried_at > pause:
            found = tried()
            if found and found != _reason:
                log.warning("commands are withheld", reason=found)
            _reason, _tried_at = found, time.monotonic()
        return _reason


def tried() -> str:
    """Try it now; returns as `reason`."""
    if sys.platform != "linux":
        return "Commands are withheld: they need Linux."
    if missing := missing_program():
        package = "bubblewrap" if missing.endswith("bwrap") else "util-linux"
        return f"Commands are withheld: {missing} is not there (install {package})."
    folder = Folder(uuid4())
    try:
        problem = _tried_in(folder)
    except Exception as error:
        log.exception("the sandbox could not be tried")
        problem = f"the sandbox could not be started ({type(error).__name__}: {error})"
    finally:
        folder.forget()
    return f"Commands are withheld: {problem}." if problem else ""


def _tried_in(folder: Folder) -> str:
    global _programs
    folder.make()
    script = _PROBES.replace("CALLS", _calls()).replace("PROGRAMS", " ".join(PROGRAMS))
    ended = run(folder, ["/bin/sh", "-c", script], CancelToken(), _SECONDS, is_trial=True)
    if ended.ending is not Ending.OVER or ended.code != 0:
        words = ended.output.text().strip().splitlines()
        return f"the sandbox could not be started: {words[-1] if words else ended.ending}"
    if not ended.clean:
        return "a process outlived its command"
    found = dict(line.partition(" ")[::2] for line in ended.output.text().splitlines())
    there = frozenset(found.get("programs", "").split())
    if there != _programs:
        log.info("programs for commands", here=sorted(there))
    _programs = there
    return _first_broken(found)


def _calls() -> str:
    """A script that asks for memory without a name, and for a socket to the machine below (AF_VSOCK); it prints the
    number of each error."""
    memory, socket = _NUMBERS.get(platform.machine(), (0, 0))
    return f'my $name = "x"; syscall({memory}, $name, 0); print $!+0; $! = 0; syscall({socket}, 40, 1, 0); print $!+0'


def _filtered() -> bool:
    return platform.machine() in _NUMBERS


def _first_broken(found: Mapping[str, str]) -> str:
    return next((probe.broken for probe in _CHECKS if not probe.holds(found.get(probe.name, "?"))), "")


def _given() -> set[str]:
    return {folder.strip("/").partition("/")[0] for folder in settings.WAYMARK_COMMAND_FOLDERS}


def forget() -> None:
    """Forget what was found, in a process that was forked."""
    global _reason, _programs, _lock
    _reason, _programs, _lock = None, None, threading.Lock()


os.register_at_fork(after_in_child=forget)
