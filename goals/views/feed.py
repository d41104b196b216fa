"""The feed: the days of it, and what its user does with an item; and the way from a message to where it was said."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.live.turns import where_of_messages
from agents.signed_in import SignedInRequest, signed_in
from goals import feed_writing, feeds
from goals.feed import Feed, FeedItem, Rating
from goals.feed_shown import shown
from goals.feeds import hour_of
from goals.owners import conversation_of
from memory.models import ThreadMessage

DAYS = 7
RATINGS = {"more": Rating.MORE, "less": Rating.LESS, "none": Rating.NONE}


@require_GET
@signed_in
def feed(request: SignedInRequest) -> HttpResponse:
    """The days of the feed, the newest first, with what was dismissed."""
    written = Feed.objects.for_user(request.user).filter(written_at__isnull=False)
    page = Paginator(written, DAYS).get_page(request.GET.get("page"))
    days = shown(page.object_list, dismissed=True)
    shown_page = {"here": "home", "days": days, "page": page, "hour": hour_of(request.user)}
    return render(request, "feed.html", shown_page | {"missing": feed_writing.unwritten(request.user)})


@require_POST
@signed_in
def feed_try(request: SignedInRequest) -> HttpResponse:
    if feed_writing.try_now(request.user):
        messages.success(request, _("Your assistant takes it up."))
    elif feed_writing.is_being_written(request.user):
        messages.info(request, _("It is being written."))
    else:
        messages.info(request, _("There is no feed of today left to write."))
    return _back(request)


@require_POST
@signed_in
def feed_discuss(request: SignedInRequest, feed_id: UUID) -> HttpResponse:
    written = Feed.objects.for_user(request.user).filter(written_at__isnull=False).select_related("thread")
    found = get_object_or_404(written, pk=feed_id)
    return redirect(conversation_of(feeds.discuss_brief(found).thread))


@require_POST
@signed_in
def item_discuss(request: SignedInRequest, item_id: UUID) -> HttpResponse:
    return redirect(conversation_of(feeds.discuss(_item(request, item_id)).thread))


@require_POST
@signed_in
def item_dismiss(request: SignedInRequest, item_id: UUID) -> HttpResponse:
    return _done(request, item_id, feeds.dismiss)


@require_POST
@signed_in
def item_bring_back(request: SignedInRequest, item_id: UUID) -> HttpResponse:
    return _done(request, item_id, feeds.bring_back)


@require_POST
@signed_in
def item_rate(request: SignedInRequest, item_id: UUID, rating: str) -> HttpResponse:
    if (chosen := RATINGS.get(rating)) is None:
        raise Http404
    if chosen != Rating.NONE:
        messages.success(request, _("The next feeds take that into account."))
    return _done(request, item_id, lambda item: feeds.rate(item, chosen))


@require_GET
@signed_in
def message(request: SignedInRequest, message_id: UUID) -> HttpResponse:
    """Lead to where something was said."""
    mine = ThreadMessage.objects.for_user(request.user).select_related("thread")
    found = get_object_or_404(mine, pk=message_id)
    return redirect(f"{conversation_of(found.thread)}{where_of_messages([found.pk]).get(found.pk, '')}")


def _item(request: SignedInRequest, item_id: UUID) -> FeedItem:
    return get_object_or_404(FeedItem.objects.for_user(request.user).select_related("thread"), pk=item_id)


def _done(request: SignedInRequest, item_id: UUID, what: Callable[[FeedItem], None]) -> HttpResponse:
    what(_item(request, item_id))
    return _back(request)


def _back(request: SignedInRequest) -> HttpResponse:
    return redirect("feed" if request.POST.get("next") == "feed" else "home")
