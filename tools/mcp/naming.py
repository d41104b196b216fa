"""The names under which tools of MCP servers are offered: the server's, two underscores, the tool's (case MCP-04)."""

import re
from hashlib import sha256
from typing import Final

SEPARATOR: Final = "__"
LONGEST: Final = 64
LONGEST_SERVER: Final = 24
# Neither holds the separator nor ends with a part of it, so that the first one in a name always ends the server's.
SERVER: Final = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_-]")


def is_server(name: str) -> bool:
    """Whether a server may be called that."""
    return len(name) <= LONGEST_SERVER and SERVER.fullmatch(name) is not None


def offered_as(server: str, tool: str) -> str:
    """The name for every vendor: of [a-zA-Z0-9_-], at most 64 long. What had to be changed ends with a fingerprint of
    what it was, so that it stays the same for ever and is that of no other."""
    room = LONGEST - len(server) - len(SEPARATOR)
    fits = ILLEGAL.sub("_", tool)
    if fits != tool or len(tool) > room:
        mark = "-" + sha256(tool.encode(errors="replace")).hexdigest()[:8]
        fits = fits[: room - len(mark)] + mark
    return f"{server}{SEPARATOR}{fits}"


def parted(name: str) -> tuple[str, str] | None:
    """Server and tool of such a name; None when it is none."""
    server, separator, tool = name.partition(SEPARATOR)
    return (server, tool) if separator and tool and is_server(server) else None
