"""The page of MCP servers: name one, look at its tools, agree to them, change it."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.outside import waits_outside
from agents.signed_in import SignedInRequest, signed_in
from goals.mcp_form import McpEditForm, McpServerForm
from tools.mcp import services
from tools.mcp.models import McpServer
from tools.mcp.standing import State, standing


@require_http_methods(["GET", "POST"])
@signed_in
@waits_outside
def settings_mcp(request: SignedInRequest) -> HttpResponse:
    form = McpServerForm(request.user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            server = services.add(request.user, form.named())
        except services.NotTaken as not_taken:
            form.add_error(not_taken.field if not_taken.field in form.fields else None, str(not_taken))
        else:
            services.check(server)
            return redirect("settings_mcp")
    words = {
        State.ACCEPTED: _("in use"),
        State.NEW: _("new"),
        State.CHANGED: _("has changed"),
        State.GONE: _("gone"),
        State.UNUSABLE: _("cannot be used"),
    }
    found = [
        {"row": row, "tools": [(each, words[each.state]) for each in standing(row)]}
        for row in McpServer.objects.for_user(request.user).select_related("sign_in")
    ]
    page = {"form": form, "servers": found, "here": "settings", "section": "mcp"}
    return render(request, "settings/mcp.html", page, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@signed_in
@waits_outside
def mcp_edit(request: SignedInRequest, server_id: UUID) -> HttpResponse:
    """Change a server; one that has moved is looked at at once."""
    server = mine(request, server_id)
    form = McpEditForm(server, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            services.edit(server, form.changes())
        except services.NotTaken as not_taken:
            form.add_error(not_taken.field if not_taken.field in form.fields else None, str(not_taken))
        else:
            services.check(mine(request, server_id))
            messages.success(request, _("Saved."))
            return redirect("settings_mcp")
    page = {"form": form, "row": server, "here": "settings", "section": "mcp"}
    return render(request, "settings/mcp_edit.html", page, status=422 if form.is_bound else 200)


@require_POST
@signed_in
@waits_outside
def mcp_check(request: SignedInRequest, server_id: UUID) -> HttpResponse:
    server = services.check(mine(request, server_id))
    if not server.error:
        messages.success(request, _("The server answers. It has %(n)d tools.") % {"n": len(server.seen)})
    return redirect("settings_mcp")


@require_POST
@signed_in
def mcp_accept(request: SignedInRequest, server_id: UUID) -> HttpResponse:
    server, chosen = mine(request, server_id), request.POST
    try:
        services.accept(server, chosen.getlist("digest"), chosen.getlist("reads_only"))
    except services.NotTaken as not_taken:
        messages.error(request, str(not_taken))
    else:
        messages.success(request, _("Saved. Agents have these tools from their next run on."))
    return redirect("settings_mcp")


@require_POST
@signed_in
def mcp_switch(request: SignedInRequest, server_id: UUID) -> HttpResponse:
    services.switch(mine(request, server_id), on="on" in request.POST)
    return redirect("settings_mcp")


@require_POST
@signed_in
def mcp_delete(request: SignedInRequest, server_id: UUID) -> HttpResponse:
    services.remove(mine(request, server_id))
    messages.success(request, _("The server and its credentials are removed."))
    return redirect("settings_mcp")


def mine(request: SignedInRequest, server_id: UUID) -> McpServer:
    return get_object_or_404(McpServer.objects.for_user(request.user).select_related("user", "sign_in"), pk=server_id)
