"""How much of a server's answer is kept and parsed at once (security.md T9, T16). Parsed JSON takes up to thirty times
the memory of its text, so what a whole answer may be long is too much for one piece of it."""

from typing import TYPE_CHECKING

from agents.providers import errors
from agents.providers.base import ProviderError, Trouble

if TYPE_CHECKING:
    import httpx2

LONGEST_ERROR = 64_000
"""Bytes of an answer that says why a call failed."""
LONGEST_LIST = 3_000_000
"""Bytes of a list of models; that of a router with hundreds of them has about one million."""
LONGEST_PIECE = 2_000_000
"""Bytes of one event of a stream, or of an answer that came as one document."""


def read_at_most(response: "httpx2.Response", most: int) -> bytes:
    """Return the body of `response` as far as it goes, and never much more than `most` bytes of it.

    A body that is longer than `most` was not read to its end.
    """
    body = bytearray()
    for read in response.iter_raw():
        body += read
        if len(body) > most:
            break
    return bytes(body)


def read_whole(response: "httpx2.Response", most: int) -> bytes:
    """Return the body of `response`. Raises: ProviderError when it is longer than `most` bytes."""
    body = read_at_most(response, most)
    if len(body) > most:
        raise too_long()
    return body


def too_long() -> ProviderError:
    """What is said of an answer that goes on and on; the same call would bring it again."""
    return errors.failure(Trouble.BROKEN_STREAM, "a piece of it is too long", retryable=False)
