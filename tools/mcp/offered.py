"""The tools of a user's servers, as `tools.registry` adds them to its own."""

from collections.abc import Mapping

from django.db.models import QuerySet

from tools.mcp.catalogue import MOST_OFFERED, accepted
from tools.mcp.models import McpServer, Transport
from tools.mcp.naming import SEPARATOR
from tools.mcp.tool import McpTool


def offered_to(user_id: int) -> Mapping[str, McpTool]:
    """Those that agents may use now, oldest server first, so that the names stay in their order."""
    usable = _rows(user_id).filter(enabled=True, changed=False)
    tools = [tool for server in usable for tool in _tools(server)]
    return {tool.name: tool for tool in tools[:MOST_OFFERED]}


def known_to(user_id: int) -> Mapping[str, McpTool]:
    """Those that the user has agreed to, also of servers that are off at the moment: their settings stay."""
    return {tool.name: tool for server in _rows(user_id) for tool in _tools(server)}


def find(user_id: int, name: str) -> McpTool | None:
    """A tool that the user has agreed to, by its whole name."""
    server = name.partition(SEPARATOR)[0]
    for row in _rows(user_id).filter(name=server):
        return next((tool for tool in _tools(row) if tool.name == name), None)
    return None


def why_off(user_id: int, name: str) -> str:
    """Why an agent is not offered a tool that the user has agreed to, as a sentence; empty when there is no such."""
    tool = find(user_id, name)
    if tool is None:
        return ""
    server = McpServer.objects.only("enabled", "changed").get(pk=tool.server_id)
    if not server.enabled:
        return f"The user has switched the server {tool.server} off."
    if server.changed:
        return (
            f"The server {tool.server} describes its tools differently now, so they are off until the user has looked "
            "at them, under Settings, MCP servers."
        )
    return f"The tool {name} is off for this agent."


def _rows(user_id: int) -> QuerySet[McpServer]:
    """Without what runs need nothing of: of a large server all that it offers is a megabyte."""
    return McpServer.objects.filter(user_id=user_id).defer("seen", "said")


def _tools(server: McpServer) -> list[McpTool]:
    reads = frozenset(server.reads_only)
    is_program = server.transport == Transport.STDIO
    return [
        McpTool(server.pk, server.name, each, reads_only=each.name in reads, is_program=is_program)
        for each in accepted(server)
    ]
