"""How an event is written to Redis: one script call keeps it, tends the text on its way, and tells everyone."""

import hashlib
from functools import lru_cache
from typing import Final
from uuid import UUID

import hiredis

from agents.live.events import Event, Think, ends_text
from agents.live.keys import KEPT_SECONDS, RESET, partial_key, stream_key, thread_channel, user_channel
from memory.encoding import dumps

KEPT_EVENTS: Final = 1000
TORN: Final = "TORN"

# KEYS: stream, partial. ARGV: payload, channel, what to do with the partial text, run, text, user's channel, note, the
# bytes of the text before this piece. A spoilt partial ('!') takes no more text: it would have a hole. One that is not
# as the sender knows it (this Redis has forgotten it) is an error, and the sender tells the whole of it again.
SEND: Final = f"""
local id = redis.call('XADD', KEYS[1], 'MAXLEN', '~', {KEPT_EVENTS}, '*', 'd', ARGV[1])
redis.call('EXPIRE', KEYS[1], {KEPT_SECONDS})
if ARGV[3] == 'grow' then
  local run = redis.call('GETRANGE', KEYS[2], 0, 35)
  if ARGV[8] == '0' and run ~= '!' then
    redis.call('SET', KEYS[2], ARGV[4] .. ARGV[5])
  elseif run == ARGV[4] and redis.call('STRLEN', KEYS[2]) == 36 + tonumber(ARGV[8]) then
    redis.call('APPEND', KEYS[2], ARGV[5])
  elseif run ~= '!' then
    return redis.error_reply('{TORN} the text on its way is not what was sent')
  end
  redis.call('EXPIRE', KEYS[2], {KEPT_SECONDS})
elseif ARGV[3] == 'set' then
  redis.call('SET', KEYS[2], ARGV[4] .. ARGV[5], 'EX', {KEPT_SECONDS})
elseif ARGV[3] == 'drop' then
  local run = redis.call('GETRANGE', KEYS[2], 0, 35)
  if run == ARGV[4] or run == '!' then redis.call('DEL', KEYS[2]) end
elseif ARGV[3] == 'spoil' then
  redis.call('SET', KEYS[2], '!', 'EX', {KEPT_SECONDS})
end
redis.call('PUBLISH', ARGV[2], id .. ' ' .. ARGV[1])
if ARGV[6] ~= '' then redis.call('PUBLISH', ARGV[6], ARGV[7]) end
"""
SHA: Final = hashlib.sha1(SEND.encode(), usedforsecurity=False).hexdigest()


def packed(thread_id: UUID, user_id: int, event: Event, before: int) -> bytes:
    """Return the packed call for one event. Everything but text also leaves a note on the user's channel.

    Args:
        before: for a piece of text, the bytes of its step that were sent before it.
    """
    payload = dumps(event.__dict__)
    if isinstance(event, Think):
        return _call(thread_id, payload, "grow", str(event.run), event.text, before=before)
    note = f'{{"type":"changed","thread":"{thread_id}","event":"{event.type}"}}'
    run, after = str(event.run), "drop" if ends_text(event.__dict__) else "keep"
    return _call(thread_id, payload, after, run, user=user_channel(user_id), note=note)


def gap(thread_id: UUID, *, run: UUID | None = None, text: str = "", spoils: bool = False) -> bytes:
    """Return the packed call for saying that events of a thread may have been lost.

    Args:
        run, text: all that this run has said of its step; nobody misses a piece of it then.
        spoils: pieces of text were lost for good.
    """
    if run is not None:
        return _call(thread_id, RESET, "set", str(run), text)
    return _call(thread_id, RESET, "spoil" if spoils else "keep")


def _call(
    thread_id: UUID,
    payload: str | bytes,
    partial: str,
    run: str = "",
    text: str = "",
    user: str = "",
    note: str = "",
    before: int = 0,
) -> bytes:
    stream, kept, channel = _names(thread_id)
    words = ("EVALSHA", SHA, 2, stream, kept, payload, channel, partial, run, text, user, note, before)
    return bytes(hiredis.pack_command(words))  # type: ignore[arg-type]


@lru_cache(maxsize=1024)
def _names(thread_id: UUID) -> tuple[str, str, str]:
    return stream_key(thread_id), partial_key(thread_id), thread_channel(thread_id)
