"""How long a history is, and where it may be cut. Pure: whoever cuts is `memory.archive`.

A cut is always before the first message of a turn, so that a call never loses its results and what stays begins with
a user's text (mission B8, case HIS-03).
"""

import json
from collections.abc import Sequence
from itertools import accumulate

from memory.messages import Block, Message, Text, Thinking, ToolResult, ToolUse

# What a token is, when no vendor has counted them.
CHARACTERS_PER_TOKEN = 4


def characters(message: Message) -> int:
    return sum(map(_length, message.blocks))


def words(message: Message) -> str:
    """What a message says, without the context that precedes a user's words."""
    texts = [block.text for block in message.blocks if isinstance(block, Text)]
    results = [block.content for block in message.blocks if isinstance(block, ToolResult)]
    return "\n\n".join(texts[-1:] if message.role == "user" else [*texts, *results])


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
    return [message if message.role == "user" else _clip(message, longest) for message in messages]


def _starts_turn(messages: Sequence[Message], at: int, message: Message) -> bool:
    return message.role == "user" and (at == 0 or messages[at - 1].role != "user")


def _length(block: Block) -> int:
    match block:
        case Text() | Thinking():
            return len(block.text)
        case ToolResult():
            return len(block.content)
        case ToolUse():
            return len(block.name) + len(json.dumps(block.arguments))


def _clip(message: Message, longest: int) -> Message:
    return message.model_copy(update={"blocks": tuple(_clip_block(block, longest) for block in message.blocks)})


def _clip_block(block: Block, longest: int) -> Block:
    match block:
        case Text():
            return block.model_copy(update={"text": shortened(block.text, longest)})
        case ToolResult():
            return block.model_copy(update={"content": shortened(block.content, longest)})
        case _:
            return block


def shortened(text: str, longest: int) -> str:
    """Return the head and the tail of a text that is longer than `longest` characters, and how much is between."""
    left_out = len(text) - longest
    if left_out <= 0:
        return text
    head = longest * 3 // 4
    return f"{text[:head]}\n[… {left_out:,} characters left out …]\n{text[len(text) - (longest - head) :]}"
