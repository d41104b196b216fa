"""Servers of tools that the user has named."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.response import Response

from agents import outside
from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.mcp_shapes import AcceptBody, McpChangeBody, McpServerBody, McpServerShape, shape_of
from agents.refusals import Refused
from agents.serializers import NothingBody
from tools.mcp import services
from tools.mcp.models import McpServer


class McpServers(ApiView):
    access = Access.OWN

    @listed("McpServer", McpServerShape, "List the servers of tools that you have named, newest first")
    def get(self, request: Request) -> Response:
        return page(
            request,
            McpServer.objects.for_user(self.user).select_related("sign_in"),
            NEWEST_FIRST,
            partial(shape_of, request),
        )

    @documented("Name a server of tools", {201: McpServerShape}, body=McpServerBody)
    def post(self, request: Request) -> Response:
        """Nothing is connected yet: check it, look at its tools, and accept those that agents may have."""
        given = self.body(McpServerBody)
        with _refusing():
            server = services.add(self.user, services.Named(**given))
        server.refresh_from_db()
        return Response(shape_of(request, server), status=201)


class OneMcpServer(ApiView):
    access = Access.OWN

    @documented("Read a server of tools", {200: McpServerShape}, errors=(401, 404), name="mcp_server_retrieve")
    def get(self, request: Request, server_id: UUID) -> Response:
        return Response(shape_of(request, _mine(self, server_id)))

    @documented("Change a server, or switch it on or off", {200: McpServerShape}, body=McpChangeBody)
    def patch(self, request: Request, server_id: UUID) -> Response:
        """Another address or command is another server: check it, and accept its tools anew."""
        server, given = _mine(self, server_id), self.body(McpChangeBody)
        enabled = given.pop("enabled", None)
        with _refusing():
            services.edit(server, services.Changes(**given))
        if enabled is not None:
            services.switch(server, on=enabled)
        return Response(shape_of(request, _mine(self, server_id)))

    @documented("Remove a server with its credentials", {204: None}, errors=(401, 404))
    def delete(self, request: Request, server_id: UUID) -> Response:
        services.remove(_mine(self, server_id))
        return Response(status=204)


class CheckMcpServer(ApiView):
    access = Access.OWN

    @documented("Connect to a server and look at its tools", {200: McpServerShape}, body=NothingBody)
    def post(self, request: Request, server_id: UUID) -> Response:
        """`error` says what went wrong; an accepted tool that says something else now is not used any more. One at
        a time for each user."""
        self.body(NothingBody)
        server = _mine(self, server_id)
        with outside.waiting.one(self.user.pk) as begun:
            if not begun:
                raise Throttled(1)
            return Response(shape_of(request, services.check(server)))


class AcceptMcpTools(ApiView):
    access = Access.OWN

    @documented("Accept tools of a server as they were shown", {200: McpServerShape}, body=AcceptBody)
    def post(self, request: Request, server_id: UUID) -> Response:
        """Agents have exactly these from their next run on. 400 with the code `changed` when one is described
        differently now, with `too_many_tools` when agents cannot have so many."""
        server, given = _mine(self, server_id), self.body(AcceptBody)
        try:
            services.accept(server, given["digests"], given.get("reads_only", []))
        except services.TooMany as too_many:
            raise Refused("too_many_tools", str(too_many)) from too_many
        except services.NotTaken as not_taken:
            raise Refused("changed", str(not_taken)) from not_taken
        return Response(shape_of(request, _mine(self, server_id)))


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except services.NotTaken as not_taken:
        raise Refused("invalid", str(not_taken)) from not_taken


def _mine(view: ApiView, server_id: UUID) -> Any:
    return get_object_or_404(McpServer.objects.for_user(view.user).select_related("user", "sign_in"), pk=server_id)
