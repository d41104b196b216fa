"""What a call of a model may come to at most, before it is made.

No tokeniser makes more tokens of a text than it has bytes, and whatever a vendor wraps around a message or a tool is
shorter than the JSON that it is sent in. What earlier calls of the run were counted to have is known better than that.
"""

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from agents.providers.base import ModelRequest, Price, Reply, Usage
from agents.providers.capabilities import Capabilities
from agents.providers.estimates import BYTES_PER_TOKEN
from agents.providers.pricing import of_length, plausible
from memory.encoding import dumps
from memory.messages import BLOCKS, Image, Message

AROUND_EACH = 32
"""Tokens that a vendor may put around a message."""

OF_A_PICTURE = 6_000
"""Tokens of a picture at most: vendors scale down what is larger than they look at."""

_MILLION = Decimal(1_000_000)


class Amount(NamedTuple):
    """US dollars and tokens. Where the price is not known, a call has no money in it."""

    money: Decimal = Decimal(0)
    tokens: int = 0

    def plus(self, other: "Amount") -> "Amount":
        return Amount(self.money + other.money, self.tokens + other.tokens)

    def minus(self, other: "Amount") -> "Amount":
        return Amount(self.money - other.money, self.tokens - other.tokens)

    def at_least(self, other: "Amount") -> "Amount":
        """The larger of both, each for itself."""
        return Amount(max(self.money, other.money), max(self.tokens, other.tokens))

    def covers(self, other: "Amount") -> bool:
        """Whether there is enough of both."""
        return self.money >= other.money and self.tokens >= other.tokens


NOTHING = Amount()


def charged(usage: Usage, cost: Decimal | None) -> Amount:
    """What is known to be spent on a call."""
    return Amount(cost or Decimal(0), (usage.input_tokens or 0) + (usage.output_tokens or 0))


def cost_at_most(price: Price | None, input_tokens: int, output_tokens: int) -> Amount:
    tokens = input_tokens + output_tokens
    if price is None:
        return Amount(tokens=tokens)
    rates = of_length(price, input_tokens)
    dearest = max(rates.input, rates.cached, rates.written or 0)
    return Amount((input_tokens * dearest + output_tokens * rates.output) / _MILLION, tokens)


def output_within(price: Price | None, input_tokens: int, amount: Amount) -> int:
    """How many tokens of output `amount` pays for beside that input; negative when it does not pay for the input."""
    within = amount.tokens - input_tokens
    output = of_length(price, input_tokens).output if price else Decimal(0)
    if output:
        rest = amount.money - cost_at_most(price, input_tokens, 0).money
        within = min(within, int(rest * _MILLION // output))
    return within


class Given(NamedTuple):
    """The input of a request: tokens that a vendor has counted, and bytes beside them."""

    tokens: int
    uncounted: int

    @property
    def most(self) -> int:
        return self.tokens + self.uncounted

    @property
    def likely(self) -> int:
        return self.tokens + math.ceil(self.uncounted / BYTES_PER_TOKEN)


def answer_at_most(can: Capabilities, given: Given, most: int, least: int) -> int:
    """How many tokens of output to ask for: `most`, or what the model says in one answer at most, or what the input
    leaves of its window. However full that is, `least` are asked for, or a quarter of a small window: whether it is too
    full, the vendor knows better."""
    answer = min(most, can.output_limit or most)
    if window := can.context_length:
        answer = min(answer, max(window - given.likely, min(least, window // 4)))
    return answer


class Counted:
    """The input of a run's next request. Fed with the replies, it counts only what is new in bytes."""

    def __init__(self) -> None:
        self._system = ""
        self._messages = 0
        self._tokens = 0

    def given(self, request: ModelRequest) -> Given:
        if request.system == self._system and len(request.messages) >= self._messages:
            return Given(self._tokens, _bytes(request.messages[self._messages :]))
        tools = sum(len(dumps([tool.name, tool.description, tool.schema])) for tool in request.tools)
        return Given(0, len(request.system.encode()) + tools + 2 * AROUND_EACH + _bytes(request.messages))

    def replied(self, request: ModelRequest, reply: Reply) -> None:
        """Learn from a reply; it stands behind the request's messages in the next one."""
        used = plausible(reply.usage)
        if used.input_tokens and used.output_tokens is not None:
            self._system, self._messages = request.system, len(request.messages) + 1
            self._tokens = used.input_tokens + used.output_tokens + AROUND_EACH


def _bytes(messages: Sequence[Message]) -> int:
    pictures = sum(isinstance(block, Image) for message in messages for block in message.blocks)
    words = sum(len(BLOCKS.dump_json(message.blocks)) + AROUND_EACH for message in messages)
    return words + pictures * OF_A_PICTURE
