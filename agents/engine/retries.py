"""Whether and when a failed model call is repeated, as a pure policy (docs/reliability.md "When the model fails").

Tier 1 holds the lease and sleeps for seconds; tier 2 lets go of it and comes back. Tier 1 belongs to the first attempt
of a call: whoever comes back after a longer wait asks once, and then waits again. So a call is sent at most
1 + `held_tries` + the tries of its class in tier 2.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from agents.providers.base import ProviderError, Trouble

NETWORK = (Trouble.UNREACHABLE, Trouble.TIMEOUT, Trouble.BROKEN_STREAM)
# Waits are stretched by up to this share, so that many runs that failed together do not come back together.
JITTER = 0.25


@dataclass(frozen=True, slots=True)
class Now:
    """Again under the same lease, after this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Later:
    """Again after a wait without a lease: the `attempt`th of `of`."""

    seconds: float
    attempt: int
    of: int


@dataclass(frozen=True, slots=True)
class Never:
    """Not again by itself.

    attempts: how many longer waits did not help; 0 when none was worth it.
    asked: seconds that the vendor wants to be left alone, when that is why.
    """

    attempts: int = 0
    asked: float | None = None


type Verdict = Now | Later | Never


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """
    held_tries, held_seconds: tier 1, how often and after what pause.
    held_longest: a vendor that asks for a longer pause than this many seconds is not waited for under the lease.
    first_seconds: the first wait of tier 2; each further one is twice as long.
    rate_limit_tries, network_tries, other_tries: how often, by what went wrong.
    longest_seconds: what a wait may last at most; a vendor that asks for more ends the run.
    """

    held_tries: int = 2
    held_seconds: float = 1.5
    held_longest: float = 10.0
    first_seconds: float = 10.0
    rate_limit_tries: int = 5
    network_tries: int = 3
    other_tries: int = 2
    longest_seconds: float = 900.0

    def after(self, error: ProviderError, held: int, waited: int, chance: float) -> Verdict:
        """Decide what follows a failed call.

        Args:
            held, waited: how often this call was repeated so far, in tier 1 and in tier 2.
            chance: from 0 to 1, for the jitter.
        """
        if not error.retryable:
            return Never()
        asked = error.retry_after or 0.0
        if asked > self.longest_seconds:
            return Never(asked=asked)
        if not waited and held < self.held_tries and asked <= self.held_longest:
            return Now(asked or self.held_seconds)
        tries = self._tries(error.trouble)
        if waited >= tries:
            return Never(attempts=waited)
        own = self.first_seconds * 2**waited
        seconds = max(own, asked) * (1 + JITTER * chance)
        return Later(max(asked, min(seconds, self.longest_seconds)), waited + 1, tries)

    def _tries(self, trouble: Trouble) -> int:
        if trouble is Trouble.RATE_LIMITED:
            return self.rate_limit_tries
        return self.network_tries if trouble in NETWORK else self.other_tries


def long_pause(seconds: float) -> str:
    """Say that a vendor asks for a longer pause than is waited for, and until when (case PRV-06 g)."""
    until = datetime.now(UTC) + timedelta(seconds=min(seconds, timedelta(days=3650).total_seconds()))
    return f"It asks to be left alone until {until:%H:%M} UTC on {until.day} {until:%B %Y}. Try again then."
