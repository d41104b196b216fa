"""A history that every vendor accepts, as a pure view over the rows: nothing here is ever written back (I10)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from memory.messages import Block, File, Image, Message, Text, Thinking, ToolResult, ToolUse, tool, with_blocks

INTERRUPTED: Final = (
    "Interrupted: this call was started, but no outcome was recorded. It may or may not have taken effect; "
    "check before you repeat it."
)
NO_OUTPUT: Final = "(no output)"
type Answers = Mapping[str, Sequence[ToolResult]]

NOTHING_RECORDED: Mapping[str, ToolResult] = MappingProxyType({})


def unanswered(messages: Iterable[Message]) -> list[str]:
    """The ids of calls that have no result."""
    answers = _answers(messages)
    return [call.id for message in messages for call in message.calls if call.id not in answers]


def repaired(messages: Sequence[Message], recorded: Mapping[str, ToolResult] = NOTHING_RECORDED) -> list[Message]:
    """Give every call exactly one result, directly after it and in order; drop results without a call, repeated calls
    and whatever has no content.

    Args:
        recorded: what is on record about calls whose result is missing, by their ids.
    """
    answers, called = _answers(messages), set[str]()
    fixed: list[Message] = []
    for message in messages:
        blocks = tuple(_kept(message, called))
        if message.role == "tool" or all(isinstance(block, Thinking) for block in blocks):
            continue
        whole = with_blocks(message, blocks)
        fixed += [whole, *(tool(_answer(call, answers, recorded)) for call in whole.calls)]
    return fixed


def _kept(message: Message, called: set[str]) -> Iterator[Block]:
    """The blocks that belong in a message of this role; calls that were made before are no calls."""
    for block in message.blocks:
        match block:
            case Text(text=text) if text.strip():
                yield block
            case Image() | File() if message.role == "user":
                yield block
            case Thinking() if message.role == "assistant":
                yield block
            case ToolUse(id=name) if message.role == "assistant" and name not in called:
                called.add(name)
                yield block


def _answers(messages: Iterable[Message]) -> Answers:
    answers = defaultdict[str, list[ToolResult]](list)
    for message in messages:
        for block in message.blocks:
            if isinstance(block, ToolResult):
                answers[block.id].append(block)
    return answers


def _answer(call: ToolUse, answers: Answers, recorded: Mapping[str, ToolResult]) -> ToolResult:
    """The first real result; else what is on record; else that it is not known."""
    given = (result for result in answers.get(call.id, ()) if not result.content.startswith(INTERRUPTED))
    real = next(given, None) or recorded.get(call.id)
    if real is not None:
        return real if real.content.strip() else real.model_copy(update={"content": NO_OUTPUT})
    return ToolResult(id=call.id, content=call.problem or INTERRUPTED, is_error=True)
