"""A model whose vendor caches what the requests of a conversation begin with, as vendors do: by equal bytes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.llm_script import Reply, Request

# Vendors count tokens; this one takes so many bytes for one.
BYTES_PER_TOKEN = 4
# What ends the body of a request, and is no part of what the next one begins with.
END = b"]}"


def one_conversation(request: Request) -> str:
    """The system prompt tells conversations from what is asked beside them, such as summaries."""
    return str(request.messages[0]["content"])[:40]


def common_length(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    shorter = min(len(one), len(other))
    pairs = enumerate(zip(one, other, strict=False))
    return shorter if one[:shorter] == other[:shorter] else next(at for at, (mine, theirs) in pairs if mine != theirs)


@dataclass
class PrefixCache:
    """Answers each request by `reply`, with usage that says how much of it was in the cache.

    cached, sizes: bytes of each request that the last one of its conversation began with, and of all of it.
    """

    reply: Callable[[Request], Reply]
    conversation: Callable[[Request], str] = one_conversation
    cached: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    _last: dict[str, bytes] = field(default_factory=dict)

    def __call__(self, request: Request) -> Reply:
        name = self.conversation(request)
        common = common_length(self._last.get(name, b""), request.raw)
        self._last[name] = request.raw
        self.cached.append(common)
        self.sizes.append(len(request.raw))
        reply = self.reply(request)
        size = len(reply.text) + sum(len(str(arguments)) for _, arguments in reply.calls)
        counts = len(request.raw), max(size, BYTES_PER_TOKEN), common
        reply.usage = tuple(count // BYTES_PER_TOKEN for count in counts)
        return reply
