"""The options of `bin/up`. Standard library only: `--help` must work before anything is installed."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Options:
    """`data` is None when it was not said on the command line."""

    data: Path | None
    host: str
    port: int
    workers: int
    verbose: bool


def parse(arguments: Sequence[str]) -> Options:
    """Read the command line; like all of argparse, leaves the program on a mistake or on --help."""
    parser = argparse.ArgumentParser(
        prog="bin/up",
        description="Start Waymark: PostgreSQL, Valkey, web server and workers. Ctrl-C stops all.",
        epilog="DATABASE_URL and REDIS_URL, in the environment or in .env, name servers to use instead of the built-in "
        "ones. WAYMARK_OWNER_EMAIL and WAYMARK_OWNER_PASSWORD make the owner's account at the first start.",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="where everything is kept (.waymark beside the program)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (127.0.0.1)")
    parser.add_argument("--port", type=_number(0, 65_535), default=8000, metavar="N", help="port to listen on (8000)")
    parser.add_argument("--workers", type=_number(1, 64), default=1, metavar="N", help="worker processes (1)")
    parser.add_argument("--verbose", action="store_true", help="print the logs here instead of into DIR/logs")
    return Options(**vars(parser.parse_args(arguments)))


class _number:
    """An argparse type: a whole number within bounds."""

    def __init__(self, least: int, most: int) -> None:
        self._least, self._most = least, most

    def __call__(self, text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not self._least <= value <= self._most:
            raise argparse.ArgumentTypeError(f"{value} is not between {self._least} and {self._most}")
        return value


if __name__ == "__main__":  # bin/up looks at the options first, with whatever Python is there
    parse(sys.argv[1:])
