"""How often one may try to sign in, counted in Redis, or in this process alone while Redis is away."""

import hashlib
import threading
import time
from dataclasses import dataclass, field

import redis
from django.conf import settings

from agents.live.stream import redis_client

WINDOW_SECONDS = 300
PER_EMAIL = 10
PER_ADDRESS = 30

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


def seconds_to_wait(email: str, address: str) -> int:
    """Count a try to sign in as `email` from `address`; return 0 if it may go on, else the seconds to wait.

    Tries are counted before the password is looked at, so that many at once cannot slip through.
    """
    waits = [0]
    for key, most in ((_email_key(email), PER_EMAIL), (_key("address", address), PER_ADDRESS)):
        tries, left = _count(key)
        if tries > most:
            waits.append(left)
    return max(waits)


def succeeded(email: str) -> None:
    """A right password clears the count of its e-mail address."""
    local.forget(_email_key(email))
    try:
        redis_client().delete(_email_key(email))
    except redis.RedisError:
        return


def _count(key: str) -> tuple[int, int]:
    try:
        tries, left = redis_client().eval(_COUNT, 1, key, WINDOW_SECONDS)
    except redis.RedisError:
        return local.count(key)
    return int(tries), int(left)


def _email_key(email: str) -> str:
    return _key("email", email.strip().casefold())


def _key(kind: str, value: str) -> str:
    """Addresses of people are kept out of Redis."""
    return f"{settings.REDIS_PREFIX}login:{kind}:{hashlib.sha256(value.encode()).hexdigest()[:32]}"
