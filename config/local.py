"""What this machine supplies when the environment does not say: keys and the addresses of the built-in servers.

All is kept in the data directory, so that every `manage.py` command beside a running `bin/up` finds them.
"""

import base64
import os
import secrets
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from pathlib import Path

from config.embedded.errors import StartError
from config.embedded.places import is_claimed

BASE_DIR = Path(__file__).resolve().parent.parent


def _signing_key() -> str:
    """A private key on the curve P-256, for web push (RFC 8292)."""
    from cryptography.hazmat.primitives.asymmetric import ec  # the supervisor does without it once there is a key

    secret = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    return base64.urlsafe_b64encode(secret.to_bytes(32)).decode().rstrip("=")


# Environment variable → file in the data directory. A Fernet key is 32 random bytes in URL-safe base64.
KEYS: dict[str, tuple[str, Callable[[], str]]] = {
    "WAYMARK_SECRET_KEY": ("secret_key", lambda: secrets.token_urlsafe(50)),
    "WAYMARK_FIELD_KEYS": ("field_keys", lambda: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()),
    "WAYMARK_VAPID_KEY": ("vapid_key", _signing_key),
}
SERVERS = {"DATABASE_URL": "database_url", "REDIS_URL": "redis_url"}
ADDRESSES = SERVERS | {"WAYMARK_URL": "web_url"}
# Commands that are of no use without the servers. The others (check, makemigrations …) do without.
SERVED = frozenset(
    (
        "changepassword",
        "chat",
        "createsuperuser",
        "dbshell",
        "health",
        "migrate",
        "owner",
        "password",
        "shell",
        "token",
        "worker",
    )
)
WITHOUT_KEYS = (
    "Without it the API keys that are stored there cannot be read. Put it back from your backup. If it is lost, make "
    "an empty file of that name: a new key is made then, and every connection needs its API key again."
)

Environment = MutableMapping[str, str]


def data_path(environment: Environment) -> Path:
    """The data directory that the environment names, else `.waymark` beside the program."""
    return Path(environment.get("WAYMARK_DATA") or BASE_DIR / ".waymark")


def read_env_file() -> None:
    """Add to the environment what `.env` beside the program says and the environment does not."""
    if (BASE_DIR / ".env").exists():
        import environ  # brings part of Django, which the supervisor does without

        environ.Env.read_env(BASE_DIR / ".env")


def adopt(environment: Environment) -> set[str]:
    """Fill in what the environment lacks from the data directory, as far as it is there. Makes nothing.

    Returns the names of what was filled in.
    """
    data = data_path(environment)
    files = ADDRESSES | {variable: file for variable, (file, _) in KEYS.items()}
    missing = {variable: file for variable, file in files.items() if variable not in environment}
    adopted = set()
    for variable, file in missing.items():
        with suppress(OSError):  # no such file, or somebody else's: the settings then say what is missing
            environment[variable] = _one_line((data / file).read_text())
            adopted.add(variable)
    return adopted


def is_stopped(environment: Environment, adopted: set[str]) -> bool:
    """Whether a built-in server was adopted although the `bin/up` that ran it is gone."""
    return bool(SERVERS.keys() & adopted) and not is_claimed(data_path(environment))


def is_database_away(error: Exception) -> bool:
    """Whether that is what ended a command."""
    from memory.pool import DATABASE_AWAY  # needs the settings

    return isinstance(error, DATABASE_AWAY)


def ensure_keys(data: Path, environment: Environment) -> None:
    """Fill in the keys that the environment lacks, making those that the data directory does not have yet.

    Raises:
        StartError: the field keys are gone, and the database that needs them is there. With new ones nobody would
            notice until an agent wants to work.
    """
    for variable, (file, make) in KEYS.items():
        if variable not in environment:
            path = data / file
            if file == "field_keys" and not path.exists() and os.path.lexists(data / "pg"):
                raise StartError(f"{path} is missing beside the database. {WITHOUT_KEYS}")
            if not path.exists() or not path.read_text().strip():
                write_private(path, make())
            environment[variable] = _one_line(path.read_text())


def remember_addresses(data: Path, addresses: dict[str, str]) -> None:
    """Note where Waymark and its built-in servers answer; those not given are other people's and not noted."""
    for variable, file in ADDRESSES.items():
        if variable in addresses:
            write_private(data / file, addresses[variable])
        else:
            (data / file).unlink(missing_ok=True)


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read; after a crash there is the whole file or none."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)


def _one_line(text: str) -> str:
    """Several field keys stand one on a line in the file, the newest first, and separated by commas in the variable."""
    return ",".join(text.split())
