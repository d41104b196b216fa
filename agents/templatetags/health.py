"""The strip on top of the staff's index: whether the parts are there, and how much waits."""

from typing import NamedTuple

import redis
from django import template
from django.db.models import Min
from django.utils import timezone

from agents.engine.presence import commands_withheld, worker_seen
from agents.live.stream import redis_client
from memory.models import AgentRun, RunStatus
from tools.searching import engine, withheld

register = template.Library()

SLOW_SECONDS = 30


class Part(NamedTuple):
    name: str
    well: bool
    text: str


@register.simple_tag
def health() -> list[Part]:
    """The database is there, else this page would not be."""
    return [Part("Database", True, "reachable"), _redis(), _worker(), _queue(), _search(), *_commands()]


def _redis() -> Part:
    try:
        redis_client().ping()
    except redis.RedisError:
        return Part("Redis", False, "not reachable: pages are not live, workers are not woken")
    return Part("Redis", True, "reachable")


def _worker() -> Part:
    seen = worker_seen(seconds=60)
    return Part("Worker", seen, "seen in the last minute" if seen else "none seen in the last minute")


def _commands() -> list[Part]:
    """Whether the sandbox holds, as the workers have found it."""
    try:
        withheld = commands_withheld()
    except redis.RedisError:
        return []
    return [Part("Commands", not withheld, " ".join(withheld) or "the sandbox holds")]


def _queue() -> Part:
    """Counted in the database, which decides; Redis only rings."""
    waiting = AgentRun.objects.filter(status=RunStatus.QUEUED)
    oldest = waiting.aggregate(oldest=Min("created_at"))["oldest"]
    if oldest is None:
        return Part("Queue", True, f"empty, {AgentRun.objects.live().count()} at work")
    age = (timezone.now() - oldest).total_seconds()
    return Part("Queue", age < SLOW_SECONDS, f"{waiting.count()} waiting, the oldest for {age:.0f} s")


def _search() -> Part:
    """One that was never set up is not ill."""
    chosen, reason = engine(), withheld()
    return Part("Web search", not (chosen and reason), f"by {chosen.name}" if chosen and not reason else reason)
