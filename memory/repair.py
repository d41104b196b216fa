"""A history that every vendor accepts, as a pure view over the rows: nothing here is ever written back."""

from collections.abc import Sequence

from memory.messages import Message, ToolResult, tool

INTERRUPTED = (
    "Interrupted: this call was started, but no outcome was recorded. It may or may not have taken effect; "
    "check before you repeat it."
)


def repaired(messages: Sequence[Message]) -> list[Message]:
    """Give every call exactly one result, directly after it and in order; drop results without a call and messages
    without content."""
    results = {block.id: block for message in messages for block in message.blocks if isinstance(block, ToolResult)}
    fixed: list[Message] = []
    for message in messages:
        if message.role == "tool" or not message.blocks:
            continue
        fixed.append(message)
        fixed.extend(
            tool(results.get(call.id) or ToolResult(id=call.id, content=INTERRUPTED, is_error=True))
            for call in message.calls
        )
    return fixed
