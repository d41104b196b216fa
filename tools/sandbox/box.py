"""The walls of the sandbox: what bubblewrap is told, and with which limits a command or a program begins (threats T12,
T13 and T15).

Inside there is no network, no other process, nothing of this machine but /usr, which is read-only, and what its room
says: for commands the workspace; for programs that are MCP servers what the operator has listed. Bubblewrap itself is
started with nothing but what is for inside: what it clears can still be read from its own process there. Limits are set
inside, because how many processes there may be is counted in the user namespace.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from django.conf import settings

from tools.sandbox.beneath import MOUNT

BWRAP: Final = "/usr/bin/bwrap"
PROGRAMS: Final = (BWRAP, "/usr/bin/prlimit", "/usr/bin/nice")
_AS_ROOT: Final = ("/usr/bin/setpriv",)
# Where root binds what a room has, so that whoever the command runs as need not be able to reach it.
_HALFWAY: Final = "/mnt"
TEMPORARY: Final = "/tmp"  # noqa: S108 (the sandbox's own)
"""A folder that is empty at the start and gone at the end, in memory; also what is called home."""
_TEMPORARY, _SHARED = 64_000_000, 16_000_000
# What a network is of no use without: how names are found, and whose certificates are good.
_NETWORK: Final = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust"),
)
_ENVIRONMENT: Final = {
    "HOME": TEMPORARY,
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


@dataclass(frozen=True, slots=True)
class Room:
    """What there is inside beside the system.

    reads, writes: files and folders that are seen, and may be changed; where they are inside, and where outside.
    start: the folder to start in. network: whether all that this machine reaches is reached, itself too.
    environment: variables that whoever starts it gives to bubblewrap, so that they stand in no list of processes.
    stays: it may live for ever, so its processor time has no end; and only memory that it uses counts, because what
    stays is often of a kind that reserves much more (Node, Java).
    """

    start: str
    reads: Mapping[str, str] = field(default_factory=dict)
    writes: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    stays: bool = False

    def binds(self) -> list[tuple[str, str, str]]:
        """What bubblewrap is told of each, where it is outside, and where inside; what lies in another comes after."""
        found = {inside: ("--ro-bind", outside) for inside, outside in self.reads.items()}
        found |= {inside: ("--bind", outside) for inside, outside in self.writes.items()}
        return [(*found[inside], inside) for inside in sorted(found)]


def workspace_room(files: Path) -> Room:
    """A command's: the folder of an agent, and programs of the operator's."""
    folders = settings.WAYMARK_COMMAND_FOLDERS
    return Room(MOUNT, reads=dict(zip(folders, folders, strict=True)), writes={MOUNT: str(files)})


def walled(room: Room, argv: Sequence[str], *, seccomp: int | None, info: int | None = None) -> list[str]:
    """What to start so that `argv` runs in the sandbox.

    Args:
        seccomp: descriptor of a filter of system calls; None where there is none for this machine.
        info: descriptor to which the process is told that everything inside ends with.
    """
    told = ["--info-fd", str(info)] if info is not None else []
    if not is_root():
        return ["/usr/bin/nice", "-n", "10", *_inner(room, room.binds(), seccomp), *told, "--", *_limits(room), *argv]
    owner = str(settings.WAYMARK_SANDBOX_UID)
    halfway = [BWRAP, "--dev-bind", "/", "/", "--tmpfs", _HALFWAY, "--unshare-pid", "--die-with-parent"]
    binds = []
    for number, (how, outside, inside) in enumerate(room.binds()):
        halfway += [how, outside, f"{_HALFWAY}/{number}"]
        binds.append((how, f"{_HALFWAY}/{number}", inside))
    becomes = [*_AS_ROOT, "--reuid", owner, "--regid", owner, "--clear-groups", "--no-new-privs"]
    walls = [*halfway, *told, "--", *becomes, *_inner(room, binds, seccomp), "--"]
    return ["/usr/bin/nice", "-n", "10", *walls, *_limits(room), *argv]


def _inner(room: Room, binds: Sequence[tuple[str, str, str]], seccomp: int | None) -> list[str]:
    return [
        *(BWRAP, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"),
        *("--cap-drop", "ALL", "--hostname", "sandbox"),
        *("--ro-bind", "/usr", "/usr"),
        *_linked("bin", "sbin", "lib", "lib32", "lib64"),
        *("--ro-bind-try", "/etc/alternatives", "/etc/alternatives"),
        *("--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"),
        *(_networked() if room.network else ()),
        *("--proc", "/proc", "--dev", "/dev"),
        *("--size", str(_TEMPORARY), "--tmpfs", TEMPORARY, "--size", str(_SHARED), "--tmpfs", "/dev/shm"),  # noqa: S108
        *(word for bind in binds for word in bind),
        *("--chdir", room.start, "--remount-ro", "/dev", "--remount-ro", "/"),
        *(word for name, value in _environment(room).items() for word in ("--setenv", name, value)),
        *(("--seccomp", str(seccomp)) if seccomp is not None else ()),
    ]


def _networked() -> list[str]:
    return ["--share-net", *(word for each in _NETWORK for word in ("--ro-bind-try", each, each))]


def _linked(*names: str) -> list[str]:
    """Folders that lie in /usr and are linked at the root, as on this machine; elsewhere they are folders."""
    words = []
    for name in names:
        if Path("/", name).is_symlink():
            words += ["--symlink", f"usr/{name}", f"/{name}"]
        elif Path("/", name).is_dir():
            words += ["--ro-bind", f"/{name}", f"/{name}"]
    return words


def _environment(room: Room) -> dict[str, str]:
    own = [f"{folder}/bin" for folder in settings.WAYMARK_COMMAND_FOLDERS]
    set_ = {"PATH": ":".join([*own, "/usr/local/bin", "/usr/bin", "/bin"]), **_ENVIRONMENT}
    return {name: value for name, value in set_.items() if name not in room.environment}


def _limits(room: Room) -> list[str]:
    memory = settings.WAYMARK_COMMAND_MEMORY * 2
    figures = {"data": memory} if room.stays else {"cpu": settings.WAYMARK_COMMAND_CPU_SECONDS, "as": memory}
    figures |= {
        "fsize": settings.WAYMARK_COMMAND_FILE,
        "nproc": settings.WAYMARK_COMMAND_PROCESSES,
        "nofile": _OPEN_FILES,
        "core": 0,
    }
    return ["/usr/bin/prlimit", *(f"--{name}={figure}" for name, figure in figures.items()), "--"]
