"""How the assistant writes the feed (mission A13)."""

from collections.abc import Container, Sequence
from typing import Any
from uuid import UUID

from django.db.models.functions import Now
from pydantic import Field

from agents.agentable import FEED
from goals.feed import Fact, Feed, FeedItem, ItemKind
from goals.feeds import open_feed
from goals.notice_feed import told_by_feed
from memory.marks import names
from memory.models import Thread
from memory.text import clean, clip
from tools.base import Arguments, Audience, Effect, Outcome, Reversal, Tool, ToolContext, ToolError, Wording
from tools.changes import Image, UndoRecord
from tools.rows import RowRestorer

MOST_ITEMS = 12


def image(feed: Feed) -> Image:
    """What has been written."""
    written = feed.written_at.isoformat() if feed.written_at else None
    return {"thread_id": str(feed.thread_id), "brief": feed.brief, "sources": feed.sources, "written_at": written}


class FeedRestorer(RowRestorer):
    kind = "feed"
    model = Feed
    image = staticmethod(image)


def item_image(item: FeedItem) -> Image:
    """What has been written, not what its user thinks of it."""
    return {
        "thread_id": str(item.thread_id),
        "feed_id": str(item.feed_id),
        "place": item.place,
        "kind": item.kind,
        "title": item.title,
        "body": item.body,
        "evidence": item.evidence,
        "sources": item.sources,
    }


class FeedItemRestorer(RowRestorer):
    kind = "feed_item"
    model = FeedItem
    image = staticmethod(item_image)


class Item(Arguments):
    kind: ItemKind = Field(description="decision: something waits for the user's word.")
    title: str = Field(min_length=1, max_length=FeedItem.TITLE_LENGTH, description="What it is, in a line.")
    body: str = Field("", max_length=FeedItem.BODY_LENGTH, description="What to know of it, in markdown, briefly.")
    evidence: tuple[str, ...] = Field(
        min_length=1, max_length=12, description='The facts that it rests on, by their names, such as ["e1", "e4"].'
    )


class WholeFeed(Arguments):
    brief: str = Field(min_length=1, max_length=Feed.BRIEF_LENGTH, description="All of it in two or three sentences.")
    items: tuple[Item, ...] = Field((), max_length=MOST_ITEMS, description="The most important first.")


class WriteFeed(Tool[WholeFeed]):
    name = "write_feed"
    description = "Write the feed of the day for the user, once: the brief and its items."
    wording = Wording("flag", "Write the feed", "Writing the feed", "Wrote the feed", "Could not write the feed")
    effect = Effect.LOCAL
    reversal = Reversal.UNDOABLE
    audience = frozenset({Audience.CONVERSATION})
    context_type = FEED
    parallel_safe = False
    contained = True
    is_work = False
    Arguments = WholeFeed

    def run(self, arguments: WholeFeed, context: ToolContext) -> Outcome:
        feed = open_feed(context.user_id)
        if feed is None:
            raise ToolError("The feed is written already. End without a word.")
        facts = {fact.name: fact for fact in map(Fact.model_validate, feed.facts)}
        missing = sorted({name for item in arguments.items for name in item.evidence if name not in facts})
        if missing:
            raise ToolError(f"There are no facts {', '.join(missing)}. Name them as they stand, such as e1.")
        before, feed.sources = image(feed), names(context.sources)
        feed.brief, feed.run, feed.written_at = clean(arguments.brief).strip(), context.run_id, Now()
        feed.save(update_fields=["brief", "sources", "run", "written_at"])
        feed.refresh_from_db(fields=["written_at"])
        told_by_feed(feed.user)
        rests_on = [[facts[name] for name in item.evidence] for item in arguments.items]
        there = Thread.objects.filter(pk__in=[mine[0].thread for mine in rests_on]).values_list("pk", flat=True)
        items = [
            _created(feed, place, item, mine, there)
            for place, (item, mine) in enumerate(zip(arguments.items, rests_on, strict=True))
        ]
        changes = [FeedRestorer().change(str(feed.pk), str(feed), before, image(feed))]
        changes += [FeedItemRestorer().change(str(item.pk), item.title, None, item_image(item)) for item in items]
        return Outcome("It is written.", clip(feed.brief, 80), UndoRecord(changes=tuple(changes)))


def _created(feed: Feed, place: int, item: Item, rests_on: Sequence[Fact], there: Container[UUID]) -> FeedItem:
    """An item is about the goal of the first fact that it names, if that is still there."""
    about = rests_on[0].thread
    fields: dict[str, Any] = {
        "kind": item.kind,
        "title": " ".join(clean(item.title).split()),
        "body": clean(item.body).strip(),
        "evidence": [fact.evidence.model_dump(mode="json") for fact in rests_on],
        "sources": feed.sources,
    }
    return FeedItem.objects.create(
        user_id=feed.user_id, feed=feed, thread_id=about if about in there else feed.thread_id, place=place, **fields
    )
