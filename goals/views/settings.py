"""Settings beside models: profile, appearance, devices."""

import zoneinfo
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents import tokens
from agents.models import DeviceToken, UserAgent
from agents.refusals import Refused
from agents.services import assistant_of, trust_again
from agents.signed_in import SignedInRequest, signed_in
from goals.feeds import hour_of, set_hour
from goals.forms import DeviceForm, ProfileForm, ThemeForm
from goals.preferences import save_profile, save_theme
from goals.toolbox import groups, modes_of, set_modes

YEAR = 365 * 24 * 3600


@require_http_methods(["GET", "POST"])
@signed_in
def settings_profile(request: SignedInRequest) -> HttpResponse:
    assistant = assistant_of(request.user)
    initial = {
        "name": request.user.first_name,
        "time_zone": assistant.time_zone,
        "feed_at": hour_of(request.user),
        "quiet_from": assistant.quiet_from,
        "quiet_to": assistant.quiet_to,
    }
    form = ProfileForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            given = form.cleaned_data
            quiet = given["quiet_from"], given["quiet_to"]
            save_profile(assistant, given["name"], given["time_zone"], quiet)
            set_hour(request.user, given["feed_at"])
        except Refused as refused:
            form.add_error("time_zone", refused.message)
        else:
            messages.success(request, _("Saved."))
            return redirect("settings")
    page = {"form": form, "zones": sorted(zoneinfo.available_timezones()), "here": "settings", "section": "profile"}
    return render(request, "settings/profile.html", page, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@signed_in
def settings_appearance(request: SignedInRequest) -> HttpResponse:
    form = ThemeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        save_theme(assistant_of(request.user), form.cleaned_data["theme"])
        answer = redirect("settings_appearance")
        answer.set_cookie("theme", form.cleaned_data["theme"], max_age=YEAR, samesite="Lax")
        return answer
    page = {"themes": UserAgent.Theme.choices, "here": "settings", "section": "appearance"}
    return render(request, "settings/appearance.html", page, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@signed_in
def settings_assistant(request: SignedInRequest) -> HttpResponse:
    """What the assistant may do."""
    assistant = assistant_of(request.user)
    if request.method == "POST":
        try:
            set_modes(assistant, modes_of(request.POST))
        except Refused as refused:
            messages.error(request, refused.message)
        else:
            messages.success(request, _("Saved."))
        return redirect("settings_assistant")
    page = {
        "groups": groups(assistant),
        "sources": assistant.thread.sources,
        "here": "settings",
        "section": "assistant",
    }
    return render(request, "settings/assistant.html", page)


@require_POST
@signed_in
def assistant_vouch(request: SignedInRequest) -> HttpResponse:
    trust_again(assistant_of(request.user).thread)
    messages.success(request, _("What it has read so far counts as yours now."))
    return redirect("settings_assistant")


@require_http_methods(["GET", "POST"])
@signed_in
def settings_devices(request: SignedInRequest) -> HttpResponse:
    """A new token is in this one answer and nowhere else."""
    form = DeviceForm(request.POST or None)
    token = ""
    if request.method == "POST" and form.is_valid():
        token = tokens.issue(request.user, form.cleaned_data["name"])
        form = DeviceForm()
    devices = DeviceToken.objects.for_user(request.user)
    page = {"form": form, "devices": devices, "token": token, "here": "settings", "section": "devices"}
    return render(request, "settings/devices.html", page, status=422 if form.is_bound else 200)


@require_POST
@signed_in
def device_revoke(request: SignedInRequest, device_id: UUID) -> HttpResponse:
    device = get_object_or_404(DeviceToken.objects.for_user(request.user), pk=device_id)
    tokens.revoke(device)
    messages.success(request, _("The device is signed out."))
    return redirect("settings_devices")
