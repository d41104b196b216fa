"""How many tokens a call has used, when its server did not count or counted nothing (case COS-03 d, e).

Rather too many than too few: the figures are for people and their budgets, and are marked as estimates.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from agents.providers.base import ModelRequest, Reply, Usage
from agents.providers.pricing import plausible
from memory.encoding import dumps
from memory.messages import Block

# A token is about so many bytes of text, or a word so many tokens, whichever makes more.
BYTES_PER_TOKEN = 3.2
TOKENS_PER_WORD = 1.35
# What vendors put around each message and around the whole.
PER_MESSAGE = 4
PER_CALL = 3
PER_PICTURE = 1_500


def counted(reply: Reply, request: ModelRequest) -> Usage:
    """Return what the reply says it used, with an estimate in the place of each count that is missing or impossible."""
    usage = plausible(reply.usage)
    said_something = bool(reply.message.blocks)
    if usage.input_tokens and (usage.output_tokens or (usage.output_tokens == 0 and not said_something)):
        return usage
    return replace(
        usage,
        input_tokens=usage.input_tokens or of_request(request),
        output_tokens=usage.output_tokens or of_blocks(reply.message.blocks),
        estimated=True,
    )


def of_request(request: ModelRequest) -> int:
    """Tokens of everything that is sent."""
    tools = sum(of_text(f"{tool.name} {tool.description} {dumps(tool.schema).decode()}") for tool in request.tools)
    messages = sum(PER_MESSAGE + of_blocks(message.blocks) for message in request.messages)
    return PER_CALL + of_text(request.system) + tools + messages


def of_blocks(blocks: Iterable[Block]) -> int:
    return sum(of_text(text_of(block)) + (PER_PICTURE if block.type == "image" else 0) for block in blocks)


def of_text(text: str) -> int:
    size = len(text.encode(errors="replace"))
    return math.ceil(max(size / BYTES_PER_TOKEN, len(text.split()) * TOKENS_PER_WORD))


def text_of(block: Block) -> str:
    """What of a block is words for the model."""
    match block.type:
        case "text" | "thinking":
            return block.text
        case "tool_use":
            return f"{block.id} {block.name} {dumps(block.arguments).decode()}"
        case "tool_result":
            return f"{block.id} {block.content}"
        case "file":
            return block.told
        case "image":
            return block.told
