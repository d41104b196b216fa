"""The page of MCP servers: name one, look at its tools, agree to them, change it."""

from collections.abc import Iterable
from enum import Enum, auto
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.live.cards import plain
from agents.mcp_shapes import said
from agents.outside import waits_outside
from agents.signed_in import SignedInRequest, signed_in
from goals.mcp_form import McpEditForm, McpServerForm
from tools.mcp import services, signing_in
from tools.mcp.definitions import MOST_TOOLS
from tools.mcp.models import McpServer
from tools.mcp.programs import program_of
from tools.mcp.standing import Standing, State, chosen_by, standing


class Wanted(Enum):
    """What a user must do before agents can use a server."""

    AGREEMENT = auto()
    REPAIR = auto()
    SIGN_IN = auto()


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
    return _page(request, form, status=422 if form.is_bound else 200)


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
    except services.TooMany as too_many:
        messages.error(request, str(too_many))
        return _page(request, McpServerForm(request.user), status=422, choosing=server)
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


def _page(
    request: SignedInRequest, form: McpServerForm, *, status: int, choosing: McpServer | None = None
) -> HttpResponse:
    """choosing: of which server tools were chosen that agents cannot have; what was chosen is shown, not what is."""
    words = {
        State.ACCEPTED: _("in use"),
        State.NEW: _("new"),
        State.CHANGED: _("has changed"),
        State.GONE: _("gone"),
        State.UNUSABLE: _("cannot be used"),
    }
    found = []
    for row in McpServer.objects.for_user(request.user).select_related("sign_in"):
        tools = standing(row)
        if row == choosing:
            digests, reads = request.POST.getlist("digest"), request.POST.getlist("reads_only")
            tools = chosen_by(tools, digests, reads)
        wanted = _wanted(row, tools)
        few = len(tools) <= MOST_TOOLS
        shown = [
            {
                "each": each,
                "state": words[each.state],
                "now": said(each.definition),
                "agreed": said(each.agreed) if each.agreed else None,
                "is_first": few or _is_first(each),
            }
            for each in tools
        ]
        found.append(
            {
                "row": row,
                "wanted": wanted,
                "mark": _mark(row, wanted),
                "is_open": row == choosing or wanted is not None,
                "to_agree": row == choosing or wanted is Wanted.AGREEMENT,
                "tools": [each for each in shown if each["is_first"]],
                "others": [each for each in shown if not each["is_first"]],
                "chosen": sum(each.chosen for each in tools),
                "program": program_of(row.argv),
                "said": plain(row.said),
            }
        )
    page = {"form": form, "servers": found, "here": "settings", "section": "mcp", "most": MOST_TOOLS}
    return render(request, "settings/mcp.html", page, status=status)


def _wanted(server: McpServer, tools: Iterable[Standing]) -> Wanted | None:
    """None: nothing. A server that is off waits for nobody."""
    if not server.enabled:
        return None
    if server.changed:
        return Wanted.AGREEMENT
    if server.error:
        return Wanted.REPAIR
    if signing_in.state_of(server) is signing_in.State.NEEDED:
        return Wanted.SIGN_IN
    is_new = not server.accepted and any(each.state is State.NEW for each in tools)
    return Wanted.AGREEMENT if is_new else None


def _mark(server: McpServer, wanted: Wanted | None) -> str:
    """The state of the mark before its name."""
    if wanted:
        return "failed" if wanted is Wanted.REPAIR else "waiting"
    if not server.enabled:
        return "paused"
    return "done" if server.accepted else "queued"


def _is_first(tool: Standing) -> bool:
    """Of a large server what is chosen, or was and is something else now; the rest is folded."""
    return tool.chosen or tool.state in (State.CHANGED, State.GONE)


def mine(request: SignedInRequest, server_id: UUID) -> McpServer:
    return get_object_or_404(McpServer.objects.for_user(request.user).select_related("user", "sign_in"), pk=server_id)
