"""Home: what happened, what needs the person, and a line to the assistant."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.refusals import Refused
from agents.services import assistant_of, send_message
from agents.signed_in import SignedInRequest, signed_in
from goals.context import build
from goals.forms import MessageForm
from goals.trail import latest_steps, needs, spenders
from tools.mcp.services import waiting_of


@require_GET
@signed_in
def home(request: SignedInRequest) -> HttpResponse:
    if not assistant_of(request.user).welcomed:
        return redirect("welcome")
    shell = build(request.user)
    places = shell.places()
    waiting, servers_off = needs(request.user, places), waiting_of(request.user)
    return render(
        request,
        "home.html",
        {
            "here": "home",
            "shell": shell,
            "greeting": greeting(timezone.localtime().hour),
            "now": timezone.localtime(),
            "steps": latest_steps(request.user, places, {need.place.thread for need in waiting}),
            "needs": waiting,
            "servers_off": servers_off,
            "count": len(waiting) + len(servers_off),
            "spend": spenders(request.user, places, shell.spent),
        },
    )


def greeting(hour: int) -> str:
    if 5 <= hour < 12:
        return _("Good morning")
    return _("Good afternoon") if 12 <= hour < 18 else _("Good evening")


@require_POST
@signed_in
def ask(request: SignedInRequest) -> HttpResponse:
    """The composer of home: a message to the assistant, then its conversation."""
    form = MessageForm(request.POST)
    client_id = form.cleaned_data["client_message_id"] if form.is_valid() else None
    try:
        send_message(assistant_of(request.user).thread, form.data.get("content", ""), client_id)
    except Refused as refused:
        messages.error(request, refused.message)
        return redirect("home")
    return redirect(f"{reverse('assistant')}?sent={client_id or ''}")
