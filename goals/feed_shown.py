"""The feed as people see it: whose each item is, and what it rests on."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count
from django.urls import reverse
from django.utils.safestring import SafeString

from agents.agentable import Agentable
from agents.costs import owners
from agents.live.markdown import render
from goals.feed import Evidence, Feed, FeedItem, ItemKind, Rating
from memory.models import AgentRun

_MARKS = {
    ItemKind.PROGRESS: "done",
    ItemKind.DISCOVERY: "done",
    ItemKind.QUESTION: "waiting",
    ItemKind.DECISION: "waiting",
}


@dataclass(frozen=True, slots=True)
class Proof:
    said: str
    url: str


@dataclass(frozen=True, slots=True)
class ShownItem:
    """agent: whose it is, and blaze its sign. mark: a step state of the style sheet. html: its body."""

    item: FeedItem
    agent: Agentable
    blaze: str
    mark: str
    html: SafeString
    proofs: Sequence[Proof]

    @property
    def liked(self) -> bool:
        return self.item.rating == Rating.MORE

    @property
    def disliked(self) -> bool:
        return self.item.rating == Rating.LESS


@dataclass(frozen=True, slots=True)
class ShownFeed:
    """run: that has written it, with `called`: how often its model; None when it is gone."""

    feed: Feed
    run: AgentRun | None
    items: Sequence[ShownItem]


def shown(feeds: Iterable[Feed], *, dismissed: bool = False) -> list[ShownFeed]:
    """
    Args:
        dismissed: also what its user has put aside.
    """
    feeds = list(feeds)
    there = FeedItem.objects.filter(feed__in=feeds).select_related("thread__goals_goal").order_by("place")
    items = list(there if dismissed else there.filter(dismissed_at=None))
    agents = owners({item.thread_id for item in items})
    runs = AgentRun.objects.annotate(called=Count("calls")).in_bulk([feed.run for feed in feeds if feed.run])
    of_feed: dict[UUID, list[ShownItem]] = defaultdict(list)
    for item in items:
        of_feed[item.feed_id].append(_shown(item, agents[item.thread_id]))
    return [ShownFeed(feed, runs.get(feed.run) if feed.run else None, of_feed[feed.pk]) for feed in feeds]


def _shown(item: FeedItem, agent: Agentable) -> ShownItem:
    proofs = [_proof(Evidence.model_validate(each)) for each in item.evidence]
    blaze = getattr(agent, "blaze", "you")
    mark = "quiet" if item.dismissed_at else _MARKS[ItemKind(item.kind)]
    return ShownItem(item, agent, blaze, mark, render(item.body), proofs)


def _proof(evidence: Evidence) -> Proof:
    return Proof(evidence.said, reverse(evidence.of, args=[evidence.id]))
