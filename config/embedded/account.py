"""Which user the servers run as. PostgreSQL refuses to run as root, and Valkey has no need to."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from config.embedded.errors import StartError

DEFAULT_USER = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int


def service_account(data: Path) -> Account | None:
    """The user for the servers on `data`; None when this process is not root and they run as the caller.

    As root it is the owner of the database that is already there, so that nothing ever changes hands; for a new one
    WAYMARK_SERVER_USER, else nobody.
    """
    if os.geteuid() != 0:
        return None
    database = data / "pg"
    if database.exists():
        return _owner(database)
    name = os.environ.get("WAYMARK_SERVER_USER", DEFAULT_USER)
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        raise StartError(
            f"There is no user {name!r} to run PostgreSQL as, which refuses to run as root. "
            "Set WAYMARK_SERVER_USER to one that exists, or start Waymark as an ordinary user."
        ) from None
    return Account(name, entry.pw_uid, entry.pw_gid)


def can_reach(account: Account | None, path: Path) -> bool:
    """Whether that user may enter (a directory) or execute (a program) `path`, whatever the folders above it say."""
    if account is None:
        return os.access(path, os.X_OK)
    check = subprocess.run(
        ["/bin/sh", "-c", 'test -x "$1"', "sh", str(path)],
        user=account.uid,
        group=account.gid,
        extra_groups=[],
        cwd="/",
        check=False,
    )
    return check.returncode == 0


def _owner(path: Path) -> Account:
    status = path.stat()
    if status.st_uid == 0:
        raise StartError(f"{path} belongs to root, and PostgreSQL refuses to run as root. Give it to another user.")
    try:
        name = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        name = str(status.st_uid)
    return Account(name, status.st_uid, status.st_gid)
