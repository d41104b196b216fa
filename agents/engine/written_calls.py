"""Which calls of a reply are taken: at most so many, and those that a model has written as text as well (case LOO-04),
with the same checks and approvals.

The latter only when the whole answer is nothing but calls of tools that were offered, and none of it is a quotation:
words that a tool has read somewhere are never taken for a call, and neither is anything inside a code fence.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from agents.providers.base import Finish, Reply
from memory.ids import new_id
from memory.messages import Message, Text, ToolResult, ToolUse, with_blocks

TAGGED: Final = re.compile(r"<tool_call>(.*?)</tool_call>\s*", re.DOTALL)


class Written(BaseModel):
    """What models write: {"name": …, "arguments": …}, some say parameters."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str
    arguments: dict[str, JsonValue] = Field(validation_alias=AliasChoices("arguments", "parameters"))


def with_written_calls(reply: Reply, messages: Sequence[Message], offered: Set[str]) -> Reply:
    """Return the reply with real calls in the place of its text, or as it is.

    Args:
        messages: what the model has read. offered: the names of its tools.
    """
    text = reply.message.text.strip()
    if not text.startswith(("<tool_call>", "{")) or reply.message.calls or reply.finish is Finish.LENGTH:
        return reply
    written = [_written(body) for body in _bodies(text)]
    calls = [each for each in written if each is not None and each.name in offered]
    if not calls or len(calls) != len(written) or _is_quoted(_bodies(text), messages):
        return reply
    others = tuple(block for block in reply.message.blocks if not isinstance(block, Text))
    uses = tuple(ToolUse(id=f"call_{new_id().hex}", name=each.name, arguments=each.arguments) for each in calls)
    return replace(reply, message=with_blocks(reply.message, (*others, *uses)))


def with_fewer_calls(reply: Reply, most: int) -> Reply:
    """Return the reply with no more than `most` calls, and a word for its model about those that were left out."""
    calls = reply.message.calls
    if len(calls) <= most:
        return reply
    others = [block for block in reply.message.blocks if not isinstance(block, ToolUse)]
    notice = f"[{len(calls) - most:,} more calls were left out: one reply may make {most}.]"
    return replace(reply, message=with_blocks(reply.message, (*others, Text(text=notice), *calls[:most])))


def _bodies(text: str) -> list[str]:
    """The JSON of each call, when there is nothing else."""
    if text.startswith("{"):
        return [text]
    return [] if TAGGED.sub("", text) else [body.strip() for body in TAGGED.findall(text)]


def _written(body: str) -> Written | None:
    try:
        return Written.model_validate_json(body)
    except ValidationError:
        return None


def _is_quoted(bodies: Sequence[str], messages: Sequence[Message]) -> bool:
    read = [_packed(block.content) for message in messages for block in message.blocks if isinstance(block, ToolResult)]
    return any(_packed(body) in text for body in bodies for text in read)


def _packed(text: str) -> str:
    """Without spaces, and without the backslashes of a text in a text."""
    return re.sub(r"[\s\\]+", "", text)
