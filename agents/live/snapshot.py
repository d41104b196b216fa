"""Where a thread stands now: what a viewer starts from, or starts again from."""

import logging
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import redis

from agents.live.keys import KEPT_SECONDS, partial_key, stream_key
from agents.live.stream import redis_client
from agents.providers.pricing import dollars
from memory.models import AgentRun, ThreadMessage

logger = logging.getLogger(__name__)

MESSAGES: Final = 200
SPOILT: Final = b"!"

# A viewer's place is always an event that exists: only then can it be told later whether something is missing. So a
# stream that is empty gets a first event, which nobody is told of.
WHERE: Final = f"""
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local id
if #last > 0 then
  id = last[1][1]
else
  id = redis.call('XADD', KEYS[1], '*', 'd', '{{"type":"open"}}')
  redis.call('EXPIRE', KEYS[1], {KEPT_SECONDS})
end
return {{id, redis.call('GET', KEYS[2]) or ''}}
"""


@dataclass(frozen=True, slots=True)
class Partial:
    """The text of the step that a run is writing."""

    run: UUID
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """The id of a thread's last event and the text on its way, both of the same moment.

    Read it before the database: what is committed in between then comes twice, and twice is harmless.
    `cursor` is empty when Redis cannot be reached; a viewer that resumes from it gets a reset. `torn`: there is a text,
    but pieces of it are lost, and those to come are of no use before it ends.
    """

    cursor: str
    partial: Partial | None
    torn: bool = False

    def text_of(self, run: AgentRun | None) -> str:
        """Return the text on its way if it is this run's; what an older run left behind is not shown."""
        return self.partial.text if run is not None and self.partial and self.partial.run == run.pk else ""


def place(thread_id: UUID) -> Place:
    try:
        cursor, text = redis_client().eval(WHERE, 2, stream_key(thread_id), partial_key(thread_id))
    except redis.RedisError as problem:
        logger.warning("no live events: %s", problem)
        return Place("", None)
    return Place(cursor.decode(), parse_partial(text), torn=text == SPOILT)


def parse_partial(raw: bytes) -> Partial | None:
    if len(raw) < 36:
        return None
    return Partial(UUID(raw[:36].decode()), raw[36:].decode("utf-8", "replace"))


def tip(thread_id: UUID) -> str:
    """Return the cursor to resume from after a snapshot that is read later than this."""
    return place(thread_id).cursor


def snapshot(thread_id: UUID) -> tuple[str, dict[str, Any]]:
    """Return (cursor, {messages, run, partial}) from the database: the last messages, the live run, its text so far."""
    where = place(thread_id)
    newest = ThreadMessage.objects.filter(thread=thread_id).order_by("-position")[:MESSAGES]
    messages = [message_json(message) for message in reversed(newest)]
    run = AgentRun.objects.live().filter(thread=thread_id).first()
    return where.cursor, {
        "messages": messages,
        "run": run_json(run) if run else None,
        "partial": where.text_of(run),
    }


def message_json(message: ThreadMessage) -> dict[str, Any]:
    """The one shape of a message for devices."""
    return {
        "id": message.pk,
        "source": message.source,
        "message_type": message.message_type,
        "content": message.content,
        "metadata": message.metadata,
        "run": message.run_id,
        "created_at": message.created_at,
    }


def run_json(run: AgentRun) -> dict[str, Any]:
    """How a live run stands, in the words of the API. `cost` is in US dollars; null when some call had no price."""
    return {
        "id": run.pk,
        "status": run.status,
        "trigger": run.trigger,
        "reason": run.reason,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "finished_at": run.finished_at,
        "iterations": run.step,
        "cost": dollars(run.cost) if run.cost_known else None,
        "error": run.error,
    }
