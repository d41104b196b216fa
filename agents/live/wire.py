"""How an event is written to Redis: one script call keeps it, tends the text on its way, and tells everyone."""

import hashlib
from typing import Final
from uuid import UUID

import orjson
import redis
from redis.exceptions import NoScriptError

from agents.live.events import Event, Failed, MessagePosted, RunChanged, Think, ToolStart
from agents.live.keys import KEPT_SECONDS, RESET, partial_key, stream_key, thread_channel, user_channel

KEPT_EVENTS: Final = 1000

# KEYS: stream, partial. ARGV: payload, channel, what to do with the partial text, run, text, user's channel, note.
# A spoilt partial ('!') takes no more text: it would have a hole.
SEND: Final = f"""
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', {KEPT_EVENTS}, '*', 'd', ARGV[1])
redis.call('EXPIRE', KEYS[1], {KEPT_SECONDS})
if ARGV[3] == 'grow' then
  local run = redis.call('GETRANGE', KEYS[2], 0, 35)
  if run == ARGV[4] then
    redis.call('APPEND', KEYS[2], ARGV[5])
  elseif run ~= '!' then
    redis.call('SET', KEYS[2], ARGV[4] .. ARGV[5])
  end
  redis.call('EXPIRE', KEYS[2], {KEPT_SECONDS})
elseif ARGV[3] == 'drop' then
  redis.call('DEL', KEYS[2])
elseif ARGV[3] == 'spoil' then
  redis.call('SET', KEYS[2], '!', 'EX', {KEPT_SECONDS})
end
redis.call('PUBLISH', ARGV[2], id .. ' ' .. ARGV[1])
if ARGV[6] ~= '' then redis.call('PUBLISH', ARGV[6], ARGV[7]) end
return id
"""
SHA: Final = hashlib.sha1(SEND.encode(), usedforsecurity=False).hexdigest()

type Command = tuple[str, ...]


def command(thread_id: UUID, user_id: int, event: Event) -> Command:
    """Return KEYS and ARGV for one event. Everything but text also leaves a note on the user's channel."""
    payload = event.model_dump_json()
    if isinstance(event, Think):
        return _command(thread_id, payload, "grow", str(event.run), event.text)
    note = orjson.dumps({"type": "changed", "thread": thread_id, "event": getattr(event, "type", "")}).decode()
    return _command(thread_id, payload, _partial_after(event), "", "", user_channel(user_id), note)


def gap(thread_id: UUID) -> Command:
    """Return KEYS and ARGV for saying that events of a thread may have been lost."""
    return _command(thread_id, RESET.decode(), "spoil")


def send(client: redis.Redis, commands: list[Command]) -> None:
    """
    Raises:
        redis.RedisError: some of the events may not have been sent.
    """
    try:
        _evaluate(client, commands)
    except NoScriptError:
        client.script_load(SEND)
        _evaluate(client, commands)


def _evaluate(client: redis.Redis, commands: list[Command]) -> None:
    if len(commands) == 1:
        client.evalsha(SHA, 2, *commands[0])
        return
    pipeline = client.pipeline(transaction=False)
    for each in commands:
        pipeline.evalsha(SHA, 2, *each)
    pipeline.execute()


def _command(
    thread_id: UUID, payload: str, partial: str, run: str = "", text: str = "", channel: str = "", note: str = ""
) -> Command:
    keys = (stream_key(thread_id), partial_key(thread_id))
    return (*keys, payload, thread_channel(thread_id), partial, run, text, channel, note)


def _partial_after(event: Event) -> str:
    """Say whether the text on its way is over once this event is out."""
    if isinstance(event, MessagePosted):
        return "keep" if event.source == "user" else "drop"
    return "drop" if isinstance(event, RunChanged | ToolStart | Failed) else "keep"
