"""The walls of the sandbox: what bubblewrap is told, and with which limits a command begins (threats T13 and T15).

Inside there is no network, no other process, nothing of this machine but /usr, which is read-only, and the workspace.
Bubblewrap itself is started with an empty environment: what it clears for the command can still be read from its own
process inside. Limits are set inside, because how many processes there may be is counted in the user namespace.
"""

import os
from pathlib import Path
from typing import Final

from django.conf import settings

from tools.sandbox.beneath import MOUNT

BWRAP: Final = "/usr/bin/bwrap"
PROGRAMS: Final = (BWRAP, "/usr/bin/prlimit", "/usr/bin/nice")
_AS_ROOT: Final = ("/usr/bin/setpriv",)
# Where root binds the workspace, so that whoever the command runs as need not be able to reach it.
_HALFWAY: Final = "/mnt"
_TEMPORARY, _SHARED = 64_000_000, 16_000_000
_ENVIRONMENT: Final = {
    "HOME": "/tmp",  # noqa: S108 (the sandbox's own)
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "EDITOR": "false",
    "VISUAL": "false",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
}
_OPEN_FILES: Final = 256


def is_root() -> bool:
    return os.geteuid() == 0


def missing_program() -> str:
    """The first program that the sandbox needs and this machine lacks; empty when all are there."""
    needed = (*PROGRAMS, *_AS_ROOT) if is_root() else PROGRAMS
    return next((each for each in needed if not os.access(each, os.X_OK)), "")


def walled(files: Path, argv: list[str], *, seccomp: int | None, info: int) -> list[str]:
    """What to start so that `argv` runs in the sandbox.

    Args:
        files: the folder that it may change.
        seccomp: descriptor of a filter of system calls; None where there is none for this machine.
        info: descriptor to which the process is told that everything inside ends with.
    """
    told = ["--info-fd", str(info)]
    limited = [*_inner(_HALFWAY if is_root() else str(files), seccomp), *([] if is_root() else told), "--", *_limits()]
    if not is_root():
        return ["/usr/bin/nice", "-n", "10", *limited, *argv]
    owner = str(settings.WAYMARK_SANDBOX_UID)
    halfway = [BWRAP, "--dev-bind", "/", "/", "--bind", str(files), _HALFWAY, "--unshare-pid", "--die-with-parent"]
    becomes = [*_AS_ROOT, "--reuid", owner, "--regid", owner, "--clear-groups", "--no-new-privs"]
    return ["/usr/bin/nice", "-n", "10", *halfway, *told, "--", *becomes, *limited, *argv]


def _inner(source: str, seccomp: int | None) -> list[str]:
    return [
        *(BWRAP, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--hostname", "sandbox"),
        *("--ro-bind", "/usr", "/usr"),
        *_linked("bin", "sbin", "lib", "lib32", "lib64"),
        *("--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
        *("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"),
        *(word for folder in settings.WAYMARK_COMMAND_FOLDERS for word in ("--ro-bind", folder, folder)),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--size", str(_TEMPORARY), "--tmpfs", "/tmp", "--size", str(_SHARED), "--tmpfs", "/dev/shm"),  # noqa: S108
        *("--bind", source, MOUNT, "--chdir", MOUNT, "--remount-ro", "/dev", "--remount-ro", "/"),
        *(word for name, value in _environment().items() for word in ("--setenv", name, value)),
        *(("--seccomp", str(seccomp)) if seccomp is not None else ()),
    ]


def _linked(*names: str) -> list[str]:
    """Folders that lie in /usr and are linked at the root, as on this machine; elsewhere they are folders."""
    words = []
    for name in names:
        if Path("/", name).is_symlink():
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        elif Path("/", name).is_dir():
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    return words


def _environment() -> dict[str, str]:
    own = [f"{folder}/bin" for folder in settings.WAYMARK_COMMAND_FOLDERS]
    return {"PATH": ":".join([*own, "/usr/local/bin", "/usr/bin", "/bin"]), **_ENVIRONMENT}


def _limits() -> list[str]:
    figures = {
        "cpu": settings.WAYMARK_COMMAND_CPU_SECONDS,
        "as": settings.WAYMARK_COMMAND_MEMORY * 2,
        "fsize": settings.WAYMARK_COMMAND_FILE,
        "nproc": settings.WAYMARK_COMMAND_PROCESSES,
        "nofile": _OPEN_FILES,
        "core": 0,
    }
    return ["/usr/bin/prlimit", *(f"--{name}={figure}" for name, figure in figures.items()), "--"]
