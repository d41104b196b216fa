"""Translate out: a ModelRequest as the body of a Chat Completions call.

The history is translated once. A run's messages only grow, so each call after the first joins bytes that are kept;
at 5,000 messages that is the difference between 0.3 and 8 ms. The messages come last in the body, so that two calls of
a run begin with the same bytes.
"""

import re
from collections.abc import Sequence

from pydantic import JsonValue

from agents.providers.base import ModelRequest
from agents.providers.codec import dumps
from memory.messages import Message, Text, ToolResult, ToolUse
from tools.base import ToolSpec

NO_OUTPUT = "(no output)"
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")


def legal_name(name: str) -> str:
    """Return `name` as vendors accept it, ^[a-zA-Z0-9_-]{1,64}$; control tokens after it are cut (case PRV-09)."""
    bare = name.partition("<|")[0].strip().removeprefix("functions.")
    return _ILLEGAL.sub("_", bare)[:64] or "unnamed"


class ChatBody:
    """Serialises the calls of one run.

    limit_field: the server's name for the limit of output tokens.
    ids: of all tool calls in the messages of the last request.
    """

    def __init__(self, limit_field: str) -> None:
        self._limit_field = limit_field
        self._seen: list[Message] = []
        self._parts: list[bytes] = []
        self.ids: set[str] = set()

    def serialise(self, request: ModelRequest, *, with_usage: bool) -> bytes:
        """Return the body. `with_usage` asks the server to count tokens, which some refuse."""
        self._follow(request.messages)
        head = dumps(self._head(request, with_usage))[:-1]
        system = [dumps({"role": "system", "content": request.system})] if request.system.strip() else []
        messages = b",".join([*system, *filter(None, self._parts)])
        return b"".join((head, b',"messages":[', messages, b"]}"))

    def _head(self, request: ModelRequest, with_usage: bool) -> dict[str, JsonValue]:
        head: dict[str, JsonValue] = {"model": request.model, "stream": True}
        if with_usage:
            head["stream_options"] = {"include_usage": True}
        if request.max_output_tokens is not None:
            head[self._limit_field] = request.max_output_tokens
        if request.tools:
            head["tools"] = [_tool(spec) for spec in request.tools]
        return head

    def _follow(self, messages: Sequence[Message]) -> None:
        """Keep what is the very same as last time, translate the rest."""
        pairs = zip(self._seen, messages, strict=False)
        kept = next((at for at, (old, new) in enumerate(pairs) if old is not new), min(len(self._seen), len(messages)))
        if kept < len(self._seen):
            del self._seen[kept:], self._parts[kept:]
            self.ids = {call.id for message in self._seen for call in message.calls}
        fresh = messages[kept:]
        self._seen.extend(fresh)
        self._parts.extend(map(_translate, fresh))
        self.ids.update(call.id for message in fresh for call in message.calls)


def _tool(spec: ToolSpec) -> JsonValue:
    function: dict[str, JsonValue] = {
        "name": legal_name(spec.name),
        "description": spec.description,
        "parameters": spec.schema,
    }
    return {"type": "function", "function": function}


def _translate(message: Message) -> bytes:
    """Return the message as JSON objects joined by commas; nothing at all when nothing in it may be sent (HIS-04)."""
    sent = [_result(block) for block in message.blocks if isinstance(block, ToolResult)]
    text = "\n\n".join(block.text for block in message.blocks if isinstance(block, Text) and block.text.strip())
    calls: list[JsonValue] = [_call(block) for block in message.blocks if isinstance(block, ToolUse)]
    if calls:
        sent.append({"role": "assistant", "content": text or None, "tool_calls": calls})
    elif text:
        sent.append({"role": message.role, "content": text})
    return b",".join(map(dumps, sent))


def _result(block: ToolResult) -> dict[str, JsonValue]:
    content = block.content if block.content.strip() else NO_OUTPUT
    return {"role": "tool", "tool_call_id": block.id, "content": f"Error: {content}" if block.is_error else content}


def _call(block: ToolUse) -> JsonValue:
    """The keys are sorted: JSONB keeps no order, and the prefix must be the same bytes after a reload."""
    arguments = dumps(block.arguments, sort_keys=True).decode()
    return {"id": block.id, "type": "function", "function": {"name": legal_name(block.name), "arguments": arguments}}
