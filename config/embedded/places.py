"""Where things lie: the data directory and its lock, the sockets, and what must be outside a closed folder."""

import fcntl
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from config.embedded.account import Account, can_reach
from config.embedded.errors import StartError

# A socket's path may have 103 bytes (macOS; 107 on Linux); PostgreSQL's own name takes 20 of them.
LONGEST_RUN_DIRECTORY = 80
DEFAULT_SYSTEM_DIRECTORY = "/var/lib/waymark"


def data_directory(path: Path) -> Path:
    """The data directory as an absolute path, made when missing and fit for use.

    As root it may be entered by others: PostgreSQL, under another user, has its files inside.
    """
    data = path.resolve()
    try:
        if not data.is_dir():
            data.mkdir(parents=True)
            data.chmod(0o711 if os.geteuid() == 0 else 0o700)  # whatever the umask
        (data / "logs").mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise StartError(f"The data folder {data} cannot be made: {error.strerror}.") from error
    if not os.access(data, os.W_OK | os.X_OK):
        raise StartError(
            f"The data folder {data} belongs to another user. Start Waymark as that user, or choose another --data."
        )
    return data


@contextmanager
def claimed(data: Path) -> Iterator[int]:
    """Hold the data directory's lock; raise StartError when another copy has it. Yields the lock's descriptor.

    The kernel drops the lock with the process that holds it, so there are no stale locks.
    """
    descriptor = os.open(data / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(descriptor, 20, 0).decode().strip() or "unknown"
            raise StartError(
                f"Waymark is already running on {data} (process {holder}). "
                "Stop that one first, or choose another folder with --data."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def is_claimed(data: Path) -> bool:
    """Whether somebody holds the data directory's lock. True when it is not ours to look at."""
    try:
        descriptor = os.open(data / "lock", os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        finally:
            os.close(descriptor)
    except (BlockingIOError, PermissionError):
        return True
    except FileNotFoundError:
        pass
    return False


def run_directory(data: Path, account: Account | None) -> Path:
    """The directory of the sockets: closed to all but the servers' user. In the data directory, unless its path is too
    long for a socket or closed to that user; then under /tmp, the same at every start."""
    inside = data / "run"
    if len(os.fsencode(inside)) > LONGEST_RUN_DIRECTORY or not can_reach(account, data):
        digest = hashlib.sha256(os.fsencode(data)).hexdigest()[:12]
        inside = Path(f"/tmp/waymark-{os.geteuid()}-{digest}")  # noqa: S108 (checked to be ours below)
    uid, gid = (account.uid, account.gid) if account else (os.geteuid(), os.getegid())
    private_directory(inside, uid, gid)
    return inside


def private_directory(path: Path, uid: int, gid: int) -> None:
    """Make a directory that only `uid` may enter, or check that the one there is. /tmp is open to all: somebody else
    may have put something of that name there."""
    try:
        path.mkdir(mode=0o700)
        if uid != os.geteuid():
            os.chown(path, uid, gid)
    except FileExistsError:
        pass
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in (uid, os.geteuid()) or status.st_mode & 0o077:
        raise StartError(f"{path} is not a private folder of ours. Look who made it, remove it and start again.")
    if status.st_uid != uid:
        os.chown(path, uid, gid)


def system_directory() -> Path:
    """Root's place for what the servers' user must reach although the data folder is closed to it, such as below /root:
    WAYMARK_SYSTEM_DIR, else /var/lib/waymark. Only root may write to it."""
    path = Path(os.environ.get("WAYMARK_SYSTEM_DIR", DEFAULT_SYSTEM_DIRECTORY))
    try:
        if not path.is_dir():
            path.mkdir(parents=True)
            path.chmod(0o755)  # whatever the umask
    except OSError as error:
        raise StartError(
            f"{path} cannot be made: {error.strerror}. It is needed because the servers do not run as root and cannot "
            "enter this folder. Set WAYMARK_SYSTEM_DIR to a folder that everybody may enter, or use another --data."
        ) from error
    require_root_only(path)
    return path


def require_root_only(path: Path) -> None:
    """Raise StartError unless `path` is a directory that only root may write to."""
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
        raise StartError(f"{path} must be a folder that belongs to root and that nobody else may write to.")


def database_directory(data: Path, account: Account | None) -> Path:
    """Where the database lies or shall lie: `pg` in the data directory. When that is closed to the servers' user, it
    lies in the system directory and `pg` is a link to it, which every later start follows."""
    place = data / "pg"
    if place.is_symlink():
        target = Path(os.readlink(place))
        if not target.is_dir():
            raise StartError(f"{place} points to {target}, which is not there. Bring it back; your data was in it.")
        return target
    if can_reach(account, data):
        return place
    if place.exists():
        raise StartError(
            f"User {account.name if account else '?'} owns the database in {place} but may not enter a folder above "
            "it. Open that folder for entering (chmod o+x), or start Waymark as that user."
        )
    home = system_directory() / f"data-{secrets.token_hex(6)}"
    home.mkdir()
    home.chmod(0o755)
    return home / "pg"
