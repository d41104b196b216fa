"""The settings of MCP servers. Part of `config.settings`."""

from django.core.exceptions import ImproperlyConfigured

from config.environment import Env
from tools.mcp.program_list import programs_from

_env = Env()

# Seconds that a call may take, and that it may take to connect and to list the tools; bytes of one answer.
WAYMARK_MCP_SECONDS = _env.float("WAYMARK_MCP_SECONDS", default=120)
WAYMARK_MCP_CONNECT_SECONDS = _env.float("WAYMARK_MCP_CONNECT_SECONDS", default=15)
WAYMARK_MCP_BYTES = _env.int("WAYMARK_MCP_BYTES", default=8_000_000)

# The programs that staff may start as servers: a JSON list, each the list of its words, or an object with what it needs
# beyond an empty sandbox: {"command": ["/opt/git/bin/mcp-server-git"], "read": ["/srv/code"]}. Only these are started.
try:
    WAYMARK_MCP_COMMANDS = programs_from(_env.str("WAYMARK_MCP_COMMANDS", default="[]"))
except ValueError as _error:
    raise ImproperlyConfigured(f"WAYMARK_MCP_COMMANDS: {_error}") from None
