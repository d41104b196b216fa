"""The feed: its days with their items, and what its user does with one."""

from typing import Any
from uuid import UUID

from django.db.models import Prefetch
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.live.snapshot import message_json
from agents.serializers import MessageShape, NothingBody, Strict
from goals import feeds
from goals.feed import Feed, FeedItem, Rating


class EvidenceShape(serializers.Serializer[Any]):
    of = serializers.ChoiceField(["message", "action"])
    id = serializers.UUIDField()
    said = serializers.CharField()


class FeedItemShape(serializers.ModelSerializer[FeedItem]):
    thread = serializers.UUIDField(source="thread_id", help_text="Of the goal that it is about, or of the assistant")
    evidence = EvidenceShape(many=True, help_text="What it rests on")
    sources = serializers.ListField(child=serializers.CharField(), help_text="Whose texts its writer had read")

    class Meta:
        model = FeedItem
        fields = ["id", "thread", "kind", "title", "body", "evidence", "sources", "rating", "dismissed_at"]
        read_only_fields = fields


class FeedShape(serializers.ModelSerializer[Feed]):
    items = FeedItemShape(many=True)
    run = serializers.UUIDField(allow_null=True, help_text="Which has written it")
    sources = serializers.ListField(child=serializers.CharField(), help_text="Whose texts its writer had read")

    class Meta:
        model = Feed
        fields = ["id", "day", "since", "until", "brief", "run", "sources", "written_at", "items"]
        read_only_fields = fields


class FeedItemChanges(Strict):
    rating = serializers.ChoiceField(
        Rating.choices, required=False, help_text="-1: less like this; 1: more; 0: neither"
    )
    dismissed = serializers.BooleanField(required=False)


class Feeds(ApiView):
    access = Access.OWN

    @listed("Feed", FeedShape, "List the days of your feed, newest first, with what was dismissed")
    def get(self, request: Request) -> Response:
        in_order = Prefetch("items", FeedItem.objects.order_by("place"))
        written = Feed.objects.for_user(self.user).filter(written_at__isnull=False).prefetch_related(in_order)
        return page(request, written, NEWEST_FIRST, lambda feed: FeedShape(feed).data)


class OneFeedItem(ApiView):
    access = Access.OWN

    @documented("Read an item of your feed", {200: FeedItemShape}, errors=(401, 404))
    def get(self, request: Request, item_id: UUID) -> Response:
        return Response(FeedItemShape(_mine(self, item_id)).data)

    @documented("Rate, dismiss or bring back an item of your feed", {200: FeedItemShape}, body=FeedItemChanges)
    def patch(self, request: Request, item_id: UUID) -> Response:
        item, given = _mine(self, item_id), self.body(FeedItemChanges)
        if "rating" in given:
            feeds.rate(item, Rating(given["rating"]))
        if "dismissed" in given:
            (feeds.dismiss if given["dismissed"] else feeds.bring_back)(item)
        return Response(FeedItemShape(_mine(self, item_id)).data)


class DiscussFeedItem(ApiView):
    access = Access.OWN

    @documented("Put an item into the conversation that it is about", {200: MessageShape}, body=NothingBody)
    def post(self, request: Request, item_id: UUID) -> Response:
        """It stands there once, however often this is asked. Answer it with a message of yours."""
        self.body(NothingBody)
        return Response(message_json(feeds.discuss(_mine(self, item_id))))


def _mine(view: ApiView, item_id: UUID) -> FeedItem:
    return get_object_or_404(FeedItem.objects.for_user(view.user).select_related("thread"), pk=item_id)
