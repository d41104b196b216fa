"""Every write to MCP servers that a face may ask for."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import orjson
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from memory.secrets import seal
from tools import trust
from tools.cancel import CancelToken
from tools.mcp import catalogue, sessions, signing_in
from tools.mcp.definitions import Definition, read, too_many
from tools.mcp.models import McpServer, Transport
from tools.mcp.naming import LONGEST_SERVER, is_server
from tools.mcp.programs import may_start
from tools.safe_fetch import FetchRefused, parsed

MOST_SERVERS = 20
MOST_HEADERS = 20
HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
VALUE = re.compile(r"[\x21-\x7e][\x20-\x7e]{0,3999}")
# What the connection itself says.
RESERVED = frozenset({"host", "connection", "content-length", "content-type", "transfer-encoding", "accept-encoding"})


class NotTaken(Exception):
    """It cannot be done. The message says why, for its user; `field` names what is wrong."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class TooMany(NotTaken):
    """Agents cannot have so many tools."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a user says of a server: either url and headers, or the words of a command."""

    name: str
    url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    argv: Sequence[str] = ()
    label: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a user says anew of a server. None: as it was. headers: instead of all that there were."""

    label: str | None = None
    url: str | None = None
    headers: dict[str, str] | None = None
    argv: Sequence[str] | None = None


def add(user: User, named: Named) -> McpServer:
    """Name a server. Nothing of it is used before its tools were looked at and agreed to.

    Raises:
        NotTaken: the name, the address or the command is none that may be used; or there are too many.
    """
    if not is_server(named.name):
        raise NotTaken(
            f"A name has at most {LONGEST_SERVER} small letters and digits, with single - or _ between them.", "name"
        )
    transport = Transport.STDIO if named.argv else Transport.HTTP
    _check_place(user, transport, named.url, named.argv)
    _check_headers(transport, named.headers)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if McpServer.objects.for_user(user).count() >= MOST_SERVERS:
            raise NotTaken("You have as many servers as one may. Remove one first.")
        if McpServer.objects.for_user(user).filter(name=named.name).exists():
            raise NotTaken("You have a server of this name already.", "name")
        return McpServer.objects.create(
            user=user,
            name=named.name,
            label=named.label,
            transport=transport,
            url=named.url if transport is Transport.HTTP else "",
            argv=[*named.argv],
            sealed_headers=_sealed(named.headers),
        )


def edit(server: McpServer, changes: Changes) -> None:
    """Change what a user says of a server. Another address or command is another server: its tools must be looked at
    and agreed to anew, and it gets no credentials that were given for what it was.

    Raises:
        NotTaken: the address or the command is none that may be used.
    """
    with transaction.atomic():
        row = McpServer.objects.select_for_update(no_key=True).select_related("user").get(pk=server.pk)
        url = row.url if changes.url is None else changes.url
        argv = row.argv if changes.argv is None else [*changes.argv]
        moved = (url, argv) != (row.url, row.argv)
        if moved:
            _check_place(row.user, row.transport, url, argv)
            _end_trust(row, [each.offered for each in read(row.accepted)])
            row.url, row.argv, row.sealed_headers, row.error = url, argv, "", ""
            row.seen, row.accepted, row.reads_only, row.changed, row.checked_at = [], [], [], False, None
            row.said, row.said_at = "", None
        is_waiting = signing_in.state_of(row) is signing_in.State.NEEDED
        if moved or (changes.headers is not None and is_waiting):
            signing_in.forget(row)
        if changes.headers is not None:
            _check_headers(row.transport, changes.headers)
            row.sealed_headers = _sealed(changes.headers)
        if changes.label is not None:
            row.label = changes.label
        row.save()
    if moved or changes.headers is not None:
        sessions.forget(row.pk)


def _check_place(user: User, transport: str, url: str, argv: Sequence[str]) -> None:
    """Raises: NotTaken: it is not where a user may have a server."""
    if transport == Transport.STDIO:
        if url:
            raise NotTaken("A server is a program or has an address, not both.", "url")
        if not may_start(user, argv):
            raise NotTaken(
                "Programs may be started by staff only, and only those that the operator has listed.", "argv"
            )
        return
    if argv:
        raise NotTaken("A server is a program or has an address, not both.", "argv")
    try:
        parsed(url)
    except FetchRefused as refused:
        raise NotTaken(str(refused), "url") from refused


def _sealed(headers: Mapping[str, str]) -> str:
    return seal(orjson.dumps(headers).decode()) if headers else ""


def _check_headers(transport: str, headers: Mapping[str, str]) -> None:
    if headers and transport == Transport.STDIO:
        raise NotTaken("A program is given no headers.", "headers")
    if len(headers) > MOST_HEADERS:
        raise NotTaken(f"At most {MOST_HEADERS} headers.", "headers")
    for name, value in headers.items():
        if not HEADER.fullmatch(name) or name.lower() in RESERVED or not VALUE.fullmatch(value):
            raise NotTaken(
                "A header has a name and a value of plain characters, and is none of the connection's own.", "headers"
            )


def check(server: McpServer) -> McpServer:
    """Connect and look at what it offers; the row says what came of it."""
    if server.transport == Transport.STDIO and not may_start(server.user, server.argv):
        server.error = "Its program may not be started any more."
        McpServer.objects.filter(pk=server.pk).update(error=server.error)
        return server
    return catalogue.look(server, CancelToken())


def accept(server: McpServer, digests: Collection[str], reads_only: Collection[str] = ()) -> None:
    """Agree to the tools that were seen: agents have exactly these from their next run on.

    Args:
        digests: of the definitions that were shown, so that nobody agrees to what they have not seen.
        reads_only: own names of tools that change nothing.

    Raises:
        NotTaken: something else was seen meanwhile.
        TooMany: agents cannot have so many, of this server or of all together.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=server.user_id)
        server = McpServer.objects.select_for_update().get(pk=server.pk)
        seen = read(server.seen)
        if not set(digests) <= {each.digest for each in seen}:
            raise NotTaken("The server's tools have changed since you looked at them. Look again.")
        before = {each.offered: each.digest for each in read(server.accepted)}
        agreed = [each for each in seen if each.digest in digests and not each.problem]
        _check_number(server, agreed)
        server.accepted = [each.stored() for each in agreed]
        server.reads_only = [each.name for each in agreed if each.name in reads_only]
        server.changed = False
        server.save(update_fields=["accepted", "reads_only", "changed"])
        now = {each.offered: each.digest for each in agreed}
        _end_trust(server, [name for name, digest in before.items() if now.get(name) != digest])


def _check_number(server: McpServer, agreed: Sequence[Definition]) -> None:
    if why := too_many(agreed):
        raise TooMany(why)
    others = McpServer.objects.filter(user_id=server.user_id).exclude(pk=server.pk).values_list("accepted", flat=True)
    elsewhere = sum(map(len, others))
    if elsewhere + len(agreed) > catalogue.MOST_OFFERED and len(agreed) > len(server.accepted):
        raise TooMany(
            f"Agents can have {catalogue.MOST_OFFERED} tools of all servers together. Your other servers have "
            f"{elsewhere}, and you chose {len(agreed)} of this one: take some away, here or there."
        )


def switch(server: McpServer, *, on: bool) -> None:
    server.enabled = on
    McpServer.objects.filter(pk=server.pk).update(enabled=on)
    if not on:
        sessions.forget(server.pk)


def waiting_of(user: User) -> QuerySet[McpServer]:
    """The servers that stay off until their user acts: they describe a tool differently now, or a sign-in is over."""
    over = Q(sign_in__signed_in_at__isnull=False, sign_in__sealed_tokens="")
    mine = McpServer.objects.for_user(user).filter(Q(changed=True) | over, enabled=True)
    return mine.only("name", "label", "changed")


def remove(server: McpServer) -> None:
    """Forget it with its credentials. What agents did with it stays on record."""
    server_id = server.pk
    with transaction.atomic():
        server = McpServer.objects.select_for_update().get(pk=server_id)
        _end_trust(server, [each.offered for each in read(server.accepted)])
        signing_in.forget(server)
        server.delete()
    sessions.forget(server_id)


def _end_trust(server: McpServer, tools: Iterable[str]) -> None:
    """A standing word was for what the tool was."""
    trust.revoke_everywhere(server.user_id, tools, "The tool has changed, or its server is gone.")
