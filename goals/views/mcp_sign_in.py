"""Signing in to an MCP server: away to its authorization server, and back."""

from functools import partial
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.outside import waits_outside
from agents.signed_in import SignedInRequest, signed_in
from goals.mcp_form import McpClientForm
from goals.views.mcp import mine
from tools.mcp import services, signing_in
from tools.mcp.failures import SignInFailed


@require_http_methods(["GET", "POST"])
@signed_in
@waits_outside
def mcp_sign_in(request: SignedInRequest, server_id: UUID) -> HttpResponse:
    """Where one signs in and, where the authorization server must be told of us first, as whom; then away to there."""
    server = mine(request, server_id)
    if signing_in.state_of(server) is signing_in.State.NONE:
        raise Http404
    form = McpClientForm(request.POST if request.method == "POST" else None)
    back = request.build_absolute_uri(reverse("mcp_signed_in"))
    document = request.build_absolute_uri(reverse("mcp_client")) if request.is_secure() else ""
    page = {"form": form, "row": server, "back": back, "document": document, "here": "settings", "section": "mcp"}
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            us = signing_in.Us(back, document, given["client_id"].strip(), given["secret"].strip())
            away = signing_in.begin(server, us)
        except SignInFailed as failed:
            form.add_error(failed.field or None, str(failed))
        else:
            # Not a redirect: the policy of our pages lets forms lead nowhere but here, whatever follows.
            return render(request, "settings/mcp_away.html", page | {"away": away})
    return render(request, "settings/mcp_sign_in.html", page, status=422 if form.is_bound else 200)


@require_GET
def mcp_client(request: HttpRequest) -> JsonResponse:
    """Who we are, for authorization servers that read it here (client id metadata document); for everybody to see."""
    here, back = (request.build_absolute_uri(reverse(name)) for name in ("mcp_client", "mcp_signed_in"))
    return JsonResponse(
        {
            "client_id": here,
            "client_name": "Waymark",
            "redirect_uris": [back],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
        }
    )


@require_GET
@signed_in
@partial(waits_outside, method="GET", instead="settings_mcp")
def mcp_signed_in(request: SignedInRequest) -> HttpResponse:
    """Where the authorization server sends the browser back to."""
    said = request.GET
    try:
        server = signing_in.finish(
            request.user, said.get("state", ""), said.get("code", ""), said.get("iss"), said.get("error", "")
        )
    except SignInFailed as failed:
        messages.error(request, str(failed))
        return redirect("settings_mcp")
    if error := services.check(server).error:
        messages.error(request, _("You are signed in, but the server cannot be used: %(error)s") % {"error": error})
    else:
        messages.success(request, _("You are signed in. Look at the server's tools."))
    return redirect("settings_mcp")


@require_POST
@signed_in
def mcp_sign_out(request: SignedInRequest, server_id: UUID) -> HttpResponse:
    signing_in.sign_out(mine(request, server_id))
    messages.success(request, _("You are signed out there."))
    return redirect("settings_mcp")
