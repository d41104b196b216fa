"""How often one may try to sign in, counted in Redis, or in this process alone while Redis is away.

Nobody is kept out by what others try: tries for an e-mail address are counted for each place they come from. From very
many places at once it is guessed all the same, so that there is a bound to all of them together, which only browsers
that have signed the person in before may pass (threat T4).
"""

import hashlib
import threading
import time
from dataclasses import dataclass, field

import redis
from django.conf import settings
from django.http import HttpRequest

from agents import known_browsers
from agents.callers import address_of
from agents.live.stream import redis_client

WINDOW_SECONDS = 300
PER_EMAIL = 10  # from one address, or one known browser
PER_ADDRESS = 30
FROM_EVERYWHERE = 200  # for one e-mail address

# One call, so that a counter without an end cannot be left behind.
_COUNT = """
local n = redis.call('INCR', KEYS[1])
if n == 1 then redis.call('EXPIRE', KEYS[1], ARGV[1]) end
return {n, redis.call('TTL', KEYS[1])}
"""


@dataclass
class LocalCounter:
    """Counts in one process. Forgets everything when it holds too much, which an attacker would need to fill first."""

    most: int = 10_000
    ends: dict[str, tuple[int, float]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, key: str) -> tuple[int, int]:
        """Count one try; return how many there were in the window and the seconds until it ends."""
        now = time.monotonic()
        with self.lock:
            if len(self.ends) > self.most:
                self.ends = {name: kept for name, kept in self.ends.items() if kept[1] > now}
            tries, end = self.ends.get(key, (0, 0.0))
            if end <= now:
                tries, end = 0, now + WINDOW_SECONDS
            self.ends[key] = tries + 1, end
        return tries + 1, max(1, round(end - now))

    def forget(self, key: str) -> None:
        with self.lock:
            self.ends.pop(key, None)


local = LocalCounter()


def seconds_to_wait(request: HttpRequest, email: str) -> int:
    """Count a try to sign in as `email`; return 0 if it may go on, else the seconds to wait.

    Tries are counted before the password is looked at, so that many at once cannot slip through; those that are
    refused for where they come from do not count for others.
    """
    if known_browsers.name_of(request, email):
        return _wait(_place_key(request, email), PER_EMAIL)
    return (
        _wait(_key("address", address_of(request)), PER_ADDRESS)
        or _wait(_place_key(request, email), PER_EMAIL)
        or _wait(_key("email", _plain(email)), FROM_EVERYWHERE)
    )


def succeeded(request: HttpRequest, email: str) -> None:
    """A right password clears the count of its e-mail address at this place."""
    key = _place_key(request, email)
    local.forget(key)
    try:
        redis_client().delete(key)
    except redis.RedisError:
        return


def _wait(key: str, most: int) -> int:
    tries, left = _count(key)
    return left if tries > most else 0


def _count(key: str) -> tuple[int, int]:
    try:
        tries, left = redis_client().eval(_COUNT, 1, key, WINDOW_SECONDS)
    except redis.RedisError:
        return local.count(key)
    return int(tries), int(left)


def _place_key(request: HttpRequest, email: str) -> str:
    """A known browser is a place of its own, wherever it is."""
    place = known_browsers.name_of(request, email) or address_of(request)
    return _key("place", f"{place} {_plain(email)}")


def _plain(email: str) -> str:
    return email.strip().casefold()


def _key(kind: str, value: str) -> str:
    """Addresses of people are kept out of Redis."""
    return f"{settings.REDIS_PREFIX}login:{kind}:{hashlib.sha256(value.encode()).hexdigest()[:32]}"
