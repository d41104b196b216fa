"""Translate out: messages in the form of Chat Completions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pydantic import JsonValue

from agents.providers.codec import loads_exactly
from agents.providers.images import key_of
from agents.providers.names import legal_name
from memory.encoding import dumps
from memory.messages import File, Image, Message, Text, Thinking, ToolResult, ToolUse

NO_OUTPUT = "(no output)"
NOT_KEPT: Final = "(What was thought here is not known any more.)"
"""Stands for thoughts, where a server wants some and there are none: blank ones are refused as well."""
UNSEALED: Final[JsonValue] = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""Stands for the seal of a call that another model has made, by the vendor's own documentation."""

type Translate = Callable[[Message, set[str], dict[bytes, Image]], Sequence[JsonValue]]


class Back(StrEnum):
    """Which thoughts a server gets back: its own; also words in the place of those that are missing, or a seal for
    calls that have none, where it insists; or nothing, where it does not know the field."""

    OWN = "own"
    THOUGHTS = "thoughts"
    SEALS = "seals"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ChatMessages:
    """maker: whose thoughts and seals go back; empty for nobody's."""

    maker: str = ""
    back: Back = Back.OWN

    def translate(self, message: Message, ids: set[str], images: dict[bytes, Image]) -> list[JsonValue]:
        """Return what may be sent of a message, which may be nothing (HIS-04), and add its calls and pictures."""
        if any(block.type == "image" for block in message.blocks):
            return [{"role": message.role, "content": _parts(message, images)}]
        sent: list[JsonValue] = []
        texts: list[str] = []
        calls: list[JsonValue] = []
        thoughts: list[str] = []
        for block in message.blocks:
            if block.type == "text" or block.type == "file":
                texts.append(block.text if block.type == "text" else block.told)
            elif block.type == "tool_use":
                ids.add(block.id)
                calls.append(self._call(block, is_first=not calls))
            elif block.type == "tool_result":
                sent.append(_result(block))
            elif block.type == "thinking" and self._is_own(block):
                thoughts.append(block.text)
        text = "\n\n".join(filter(str.strip, texts))
        said: dict[str, JsonValue] = {"role": "assistant" if calls else message.role, "content": text or None}
        if thoughts or self.back is Back.THOUGHTS:
            said |= self._thoughts(message, thoughts)
        if calls:
            sent.append({**said, "tool_calls": calls})
        elif text:
            sent.append(said)
        return sent

    def _thoughts(self, message: Message, thoughts: list[str]) -> dict[str, JsonValue]:
        """Some models go on thinking where they were when they called a tool, and refuse to go on without."""
        if message.role != "assistant":
            return {}
        return {"reasoning_content": "\n\n".join(thoughts) or NOT_KEPT}

    def _call(self, block: ToolUse, *, is_first: bool) -> dict[str, JsonValue]:
        """Of calls that were made together only the first has to have a seal."""
        call = _call(block)
        if block.signature and block.maker == self.maker and self.back is not Back.NONE:
            call["extra_content"] = loads_exactly(block.signature)
        elif is_first and self.back is Back.SEALS:
            call["extra_content"] = UNSEALED
        return call

    def _is_own(self, thought: Thinking) -> bool:
        """Whether it is one in words that its maker gets back."""
        mine = thought.maker == self.maker != "" and self.back is not Back.NONE
        return mine and thought.signature is None and bool(thought.text)


def _parts(message: Message, images: dict[bytes, Image]) -> list[JsonValue]:
    """Return a message with pictures, with a key in the place of each."""
    parts: list[JsonValue] = []
    for block in message.blocks:
        if isinstance(block, Image):
            key = key_of(block)
            images[key] = block
            parts += [{"type": "text", "text": block.told}, key.decode()]
        elif isinstance(block, Text | File) and (text := block.told if isinstance(block, File) else block.text).strip():
            parts.append({"type": "text", "text": text})
    return parts


def _result(block: ToolResult) -> dict[str, JsonValue]:
    content = block.content if block.content.strip() else NO_OUTPUT
    return {"role": "tool", "tool_call_id": block.id, "content": f"Error: {content}" if block.is_error else content}


def _call(block: ToolUse) -> dict[str, JsonValue]:
    """The keys are sorted: JSONB keeps no order, and the prefix must be the same bytes after a reload."""
    arguments = dumps(block.arguments, sort_keys=True).decode()
    return {"id": block.id, "type": "function", "function": {"name": legal_name(block.name), "arguments": arguments}}
