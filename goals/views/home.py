"""Home: what happened, what needs the person, and a line to the assistant."""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.costs import spent_since
from agents.refusals import Refused
from agents.services import assistant_of, send_message
from agents.signed_in import SignedInRequest, signed_in
from goals import feed_writing, feeds, looks
from goals.context import all_places, build, places_of
from goals.feed_shown import shown
from goals.forms import MessageForm
from goals.trail import NEEDS, Step, latest_steps, needs, spenders, with_news
from goals.updates import Kind, Update, conversations, updates
from tools.mcp.services import waiting_of


@require_GET
@signed_in
def home(request: SignedInRequest) -> HttpResponse:
    if not assistant_of(request.user).welcomed:
        return redirect("welcome")
    shell, device = build(request.user), looks.device_of(request)
    places = all_places(request.user, shell)
    waiting, servers_off = needs(request.user, places), waiting_of(request.user)
    by_itself = "HX-Request" in request.headers  # nobody need look at a page that brings itself up to date
    since = looks.since(request.user, device) if by_itself else looks.look(request.user, device)
    news = looks.by_place(updates(request.user, since, places.keys()))
    resting = {need.place.thread for need in waiting if need.place}
    steps = with_news(latest_steps(request.user, places, resting), news, places)
    last = feeds.newest(request.user)
    feed = shown([last])[0] if last else None
    if feed and feed.feed.day == timezone.localdate():
        told = {proof["id"] for each in feed.items for proof in each.item.evidence}
        steps = [step for step in steps if not _is_told(step, news, told)]  # it stands there already
    answer = render(
        request,
        "home.html",
        {
            "here": "home",
            "shell": shell,
            "greeting": greeting(timezone.localtime().hour),
            "now": timezone.localtime(),
            "feed": feed,
            "missing": feed_writing.unwritten(request.user),
            "since": since,
            "any_news": bool(news),
            "fresh": [step for step in steps if step.place.thread in news],
            "earlier": [step for step in steps if step.place.thread not in news],
            "counts": {thread: looks.counts(found) for thread, found in news.items()},
            "spent": spent_since(request.user, since),
            "needs": waiting,
            "servers_off": servers_off,
            "needs_count": len(waiting) + len(servers_off) + max(0, shell.asked - NEEDS),
            "spend": spenders(request.user, places, shell.spent),
        },
    )
    looks.remember(answer, device)
    return answer


def _is_told(step: Step, news: Mapping[UUID, Sequence[Update]], told: Collection[str]) -> bool:
    """Whether the feed tells of a step and of all else that is new there, but for mere changes."""
    new = (update.id for update in news.get(step.place.thread, ()) if update.kind != Kind.CHANGE)
    return {str(each) for each in (step.id, *new)} <= set(told)


@require_GET
@signed_in
def since(request: SignedInRequest) -> HttpResponse:
    """All that is new on this device, kind by kind."""
    begin = looks.since(request.user, looks.device_of(request))
    news = updates(request.user, begin, conversations(request.user))
    page = {
        "here": "home",
        "since": begin,
        "kinds": [(kind, [update for update in news if update.kind == kind]) for kind in Kind],
        "places": places_of(request.user, {update.thread for update in news}),
        "spent": spent_since(request.user, begin),
        "any": news,
    }
    return render(request, "since.html", page)


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
