"""How long a history is, and where it may be cut. Pure: whoever cuts is `memory.archive`.

A cut is always before the first message of a turn, so that a call never loses its results and what stays begins with
a user's text (mission B8, case HIS-03).
"""

import json
from collections.abc import Sequence
from itertools import accumulate

from memory.messages import Block, File, Image, Message, Text, Thinking, ToolResult, ToolUse, rewritten
from memory.text import shortened

# What a token is, when no vendor has counted them.
CHARACTERS_PER_TOKEN = 4
# Of a picture of 2,000 by 1,000 pixels; vendors count between a few hundred and a few thousand.
TOKENS_OF_IMAGE = 1_500


def characters(message: Message) -> int:
    return sum(map(_length, message.blocks))


def estimate(messages: Sequence[Message]) -> int:
    """Tokens of a history, roughly."""
    return sum(map(characters, messages)) // CHARACTERS_PER_TOKEN


def cut(messages: Sequence[Message], share: float) -> int:
    """Return the place of the first message that stays: the newest whole turns that make up at most `share` of the
    history, but always the last turn, which may be open. 0: there is nothing before it; a share of 0 keeps nothing.
    """
    if not share:
        return len(messages)
    starts = [at for at, message in enumerate(messages) if _starts_turn(messages, at, message)]
    if not starts:
        return 0
    before = [0, *accumulate(map(characters, messages))]
    most = before[-1] * share
    return next((at for at in starts if before[-1] - before[at] <= most), starts[-1])


def clipped(messages: Sequence[Message], longest: int) -> list[Message]:
    """Return the same messages with every result and every text of the agent cut to `longest` characters."""

    def short(text: str) -> str:
        return shortened(text, longest)

    return [message if message.role == "user" else rewritten(message, short, short) for message in messages]


def _starts_turn(messages: Sequence[Message], at: int, message: Message) -> bool:
    return message.role == "user" and (at == 0 or messages[at - 1].role != "user")


def _length(block: Block) -> int:
    match block:
        case Text() | Thinking():
            return len(block.text)
        case ToolResult():
            return len(block.content)
        case File():
            return len(block.told)
        case Image():
            return TOKENS_OF_IMAGE * CHARACTERS_PER_TOKEN
        case ToolUse():
            return len(block.name) + len(json.dumps(block.arguments))
