"""The settings of MCP servers. Part of `config.settings`."""

import json

import environ
from django.core.exceptions import ImproperlyConfigured

_env = environ.Env()

# Seconds that a call may take, and that it may take to connect and to list the tools; bytes of one answer.
WAYMARK_MCP_SECONDS = _env.float("WAYMARK_MCP_SECONDS", default=120)
WAYMARK_MCP_CONNECT_SECONDS = _env.float("WAYMARK_MCP_CONNECT_SECONDS", default=15)
WAYMARK_MCP_BYTES = _env.int("WAYMARK_MCP_BYTES", default=8_000_000)

# The programs that staff may start as servers: a JSON list of commands, each a list of its words, such as
# [["/usr/bin/mcp-server-git", "--repository", "/srv/code"]]. Only exactly these are started.
try:
    _commands: object = json.loads(_env.str("WAYMARK_MCP_COMMANDS", default="[]"))
except ValueError as _error:
    raise ImproperlyConfigured(f"WAYMARK_MCP_COMMANDS is no JSON: {_error}") from _error


def _is_command(argv: object) -> bool:
    return isinstance(argv, list) and bool(argv) and all(isinstance(word, str) for word in argv)


if not isinstance(_commands, list) or not all(map(_is_command, _commands)):
    raise ImproperlyConfigured("WAYMARK_MCP_COMMANDS is a JSON list of commands, each a list of words.")
WAYMARK_MCP_COMMANDS: list[list[str]] = _commands
