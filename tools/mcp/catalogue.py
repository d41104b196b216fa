"""Which tools of which servers a user's agents have, and what happens when a server changes its mind (threat T11)."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from memory.text import clean, clip
from tools.base import ToolError
from tools.cancel import CancelToken
from tools.mcp import sessions, signing_in
from tools.mcp.credentials import without_credentials
from tools.mcp.definitions import Definition, defined, digest_of, read
from tools.mcp.models import McpServer, Transport
from tools.mcp.programs import may_start
from tools.mcp.transports import Target, target_of

MOST_OFFERED = 100
"""To one agent, of all servers together: some vendors take 128 tools in all."""


def accepted(server: McpServer) -> list[Definition]:
    """What its user has agreed to and can be offered."""
    return [each for each in read(server.accepted) if not each.problem]


def usable(user_id: int, server_id: UUID, definition: Definition, *, reads_only: bool) -> Target:
    """Where to call a tool.

    Args:
        reads_only: it is called as one of which its user has said so.

    Raises:
        ToolError: its user has taken it away since the run began.
    """
    mine = McpServer.objects.filter(user_id=user_id, pk=server_id)
    server = mine.select_related("user", "sign_in").defer("seen", "said").first()
    if server is None or not server.enabled:
        raise ToolError("Nothing was done: the user has switched this server off.")
    if server.changed:
        raise ToolError("Nothing was done: the server has changed its tools, and the user has not looked at them yet.")
    if not any(each.digest == definition.digest for each in accepted(server)):
        raise ToolError("Nothing was done: the user has not agreed to this tool.")
    if reads_only and definition.name not in server.reads_only:
        raise ToolError("Nothing was done: the user does not say any more that this tool only reads.")
    if server.transport == Transport.STDIO and not may_start(server.user, server.argv):
        raise ToolError("Nothing was done: the program of this server may not be started any more.")
    return target_of(server)


def still_is(definition: Definition, found: Iterable[dict[str, Any]]) -> bool:
    """Whether a server says of a tool, now, what was agreed to.

    Raises:
        ToolError: it does not have it any more.
    """
    digests = [digest_of(tool) for tool in found if tool["name"] == definition.name]
    if not digests:
        raise ToolError("Nothing was done: the server does not have this tool any more.")
    return digests == [definition.digest]


def hold(server_id: UUID) -> None:
    """Offer none of a server's tools until its user has looked at them."""
    McpServer.objects.filter(pk=server_id).update(changed=True)


def asks_to_sign_in(server_id: UUID, challenge: str) -> None:
    """A server lets everybody look, and nobody call who has not signed in: find out where, for its user's page."""
    server = McpServer.objects.filter(pk=server_id).select_related("sign_in").first()
    if server is not None and signing_in.state_of(server) is signing_in.State.NONE:
        signing_in.look_for(server, challenge, for_calls=True)


def look(server: McpServer, cancel: CancelToken) -> McpServer:
    """Connect, ask for the tools and keep what it says; or why that did not work. Of a server that was moved meanwhile
    nothing is kept."""
    row = McpServer.objects.filter(pk=server.pk, url=server.url, argv=server.argv)
    target = target_of(server)
    try:
        found = sessions.tools_of(target, cancel)
    except sessions.SignInNeeded as needed:
        server.error = signing_in.look_for(server, needed.challenge)
        row.update(error=server.error, checked_at=Now())
        return server
    except (sessions.Unreachable, TimeoutError) as error:
        server.error = clip(without_credentials(clean(str(error)), target) or "It took too long.", 500)
        row.update(error=server.error, checked_at=Now())
        return server
    return _seen(row, defined(server.name, found), as_nobody=target.grant is None) or server


def _seen(row: QuerySet[McpServer], seen: Sequence[Definition], *, as_nobody: bool) -> McpServer | None:
    """Keep what a server has said, beside what its user and its calls have done while it was asked: a hold stays. None:
    it was moved meanwhile.

    Args:
        as_nobody: it was asked without a sign-in.
    """
    with transaction.atomic():
        server = row.select_related("user", "sign_in").select_for_update(of=("self",), no_key=True).first()
        if server is None:
            return None
        agreed = {each.name: each.digest for each in accepted(server)}
        is_other = any(each.problem or each.digest != agreed[each.name] for each in seen if each.name in agreed)
        server.error, server.seen, server.changed = "", [each.stored() for each in seen], server.changed or is_other
        server.checked_at = timezone.now()
        server.save(update_fields=["error", "seen", "changed", "checked_at"])
        if as_nobody:
            signing_in.end_when_not_wanted(server)
    return row.select_related("user", "sign_in").first()
