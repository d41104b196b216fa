"""PostgreSQL and Valkey as children of the process that needs them: no daemon, no port, nothing left behind.

The programs come from the wheels of the lock file. `embedded_servers` is for tests and the bench; `config.supervisor`
drives the same parts one by one, because it must also restart them.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from config.embedded.account import service_account
from config.embedded.errors import StartError
from config.embedded.places import claimed, data_directory
from config.embedded.postgres import Postgres
from config.embedded.process import Server, stopped, wait_ready
from config.embedded.valkey import Valkey

__all__ = ["Servers", "StartError", "embedded_servers"]


@dataclass(frozen=True, slots=True)
class Servers:
    """Where the two servers answer, in the form that settings take from the environment."""

    database_url: str
    redis_url: str


@contextmanager
def embedded_servers(data_dir: Path, *, durable: bool = True) -> Iterator[Servers]:
    """Both servers on `data_dir`, ready, until the block ends.

    Args:
        data_dir: made when missing; holds the database, the logs and the lock.
        durable: False turns fsync off. For tests only: a power cut may then destroy the database.

    Raises:
        StartError: the directory is in use or of no use, or a server did not start; the message is for a person.
    """
    data = data_directory(data_dir)
    with claimed(data), ExitStack() as cleanup:
        account = service_account(data)
        postgres, valkey = Postgres(data, account, durable=durable), Valkey(data, account)
        servers: list[Server] = [valkey, postgres]
        for server in servers:
            process = server.spawn()
            cleanup.callback(stopped, process, server)
            wait_ready(process, server)
        postgres.ensure_database()
        yield Servers(postgres.url, valkey.url)
