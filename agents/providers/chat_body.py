"""Translate out: a ModelRequest as the body of a Chat Completions call.

The history is translated once, and so is what stands before it. A run's messages only grow, so each call after the
first joins bytes that are kept. The messages come last in the body, so that two calls of a run begin with the same
bytes.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import is_

from pydantic import JsonValue

from agents.providers.base import ModelRequest
from agents.providers.codec import dumps
from memory.messages import Message, ToolResult, ToolUse
from tools.base import ToolSpec

NO_OUTPUT = "(no output)"
# How many messages make a piece that is kept or translated anew.
TOGETHER = 64
MEMO = "chat_body"
_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")


@functools.lru_cache(1_000)
def legal_name(name: str) -> str:
    """Return `name` as vendors accept it, ^[a-zA-Z0-9_-]{1,64}$; control tokens after it are cut (case PRV-09)."""
    bare = name.partition("<|")[0].strip().removeprefix("functions.")
    return _ILLEGAL.sub("_", bare)[:64] or "unnamed"


@dataclass(slots=True)
class Translated:
    """What was sent of some messages, piece by piece, so that a history that goes on differently loses its end only.

    ends: where each piece ends among the messages. ids: of the tool calls in each piece.
    """

    messages: list[Message] = field(default_factory=list)
    pieces: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    ids: list[set[str]] = field(default_factory=list)

    def follow(self, messages: Sequence[Message]) -> None:
        """Keep what is the very same, translate the rest, many together: that is several times cheaper than one by
        one."""
        kept = self._same(messages)
        while self.ends and self.ends[-1] > kept:
            del self.ends[-1], self.pieces[-1], self.ids[-1]
        del self.messages[self.ends[-1] if self.ends else 0 :]
        for start in range(len(self.messages), len(messages), TOGETHER):
            self._add(messages[start : start + TOGETHER])

    def _same(self, messages: Sequence[Message]) -> int:
        if len(self.messages) <= len(messages) and all(map(is_, self.messages, messages)):
            return len(self.messages)
        pairs = zip(self.messages, messages, strict=False)
        shorter = min(len(self.messages), len(messages))
        return next((at for at, (old, new) in enumerate(pairs) if old is not new), shorter)

    def _add(self, messages: Sequence[Message]) -> None:
        ids: set[str] = set()
        sent = [item for message in messages for item in _translate(message, ids)]
        self.pieces.append(dumps(sent)[1:-1] if sent else b"")
        self.messages.extend(messages)
        self.ends.append(len(self.messages))
        self.ids.append(ids)


class ChatBody:
    """Serialises the calls of one run.

    limit_field: the server's name for the limit of output tokens.
    """

    def __init__(self, limit_field: str) -> None:
        self._limit_field = limit_field
        self._asked: tuple[ModelRequest, bool] | None = None
        self._opening = b""
        self._system: list[bytes] = []
        self._history = Translated()

    @property
    def ids(self) -> set[str]:
        """Of all tool calls in the messages of the last request."""
        return set().union(*self._history.ids)

    def serialise(self, request: ModelRequest, *, with_usage: bool) -> bytes:
        """Return the body. `with_usage` asks the server to count tokens, which some refuse."""
        asked = replace(request, messages=(), tools=tuple(request.tools)), with_usage
        if asked != self._asked:
            self._asked, self._opening, self._system = asked, self._open(request, with_usage), _system(request)
        kept = request.memo.setdefault(MEMO, self._history) if request.memo is not None else self._history
        assert isinstance(kept, Translated)
        kept.follow(request.messages)
        self._history = kept
        return b"".join((self._opening, b",".join([*self._system, *filter(None, kept.pieces)]), b"]}"))

    def _open(self, request: ModelRequest, with_usage: bool) -> bytes:
        head: dict[str, JsonValue] = {"model": request.model, "stream": True}
        if with_usage:
            head["stream_options"] = {"include_usage": True}
        if request.max_output_tokens is not None:
            head[self._limit_field] = request.max_output_tokens
        if request.tools:
            head["tools"] = [_tool(spec) for spec in request.tools]
        return dumps(head)[:-1] + b',"messages":['


def _system(request: ModelRequest) -> list[bytes]:
    return [dumps({"role": "system", "content": request.system})] if request.system.strip() else []


def _tool(spec: ToolSpec) -> JsonValue:
    function: dict[str, JsonValue] = {
        "name": legal_name(spec.name),
        "description": spec.description,
        "parameters": spec.schema,
    }
    return {"type": "function", "function": function}


def _translate(message: Message, ids: set[str]) -> list[dict[str, JsonValue]]:
    """Return what may be sent of a message, which may be nothing (HIS-04), and add its calls to `ids`."""
    sent: list[dict[str, JsonValue]] = []
    texts: list[str] = []
    calls: list[JsonValue] = []
    for block in message.blocks:
        if block.type == "text":
            texts.append(block.text)
        elif block.type == "tool_use":
            ids.add(block.id)
            calls.append(_call(block))
        elif block.type == "tool_result":
            sent.append(_result(block))
    text = "\n\n".join(filter(str.strip, texts))
    if calls:
        sent.append({"role": "assistant", "content": text or None, "tool_calls": calls})
    elif text:
        sent.append({"role": message.role, "content": text})
    return sent


def _result(block: ToolResult) -> dict[str, JsonValue]:
    content = block.content if block.content.strip() else NO_OUTPUT
    return {"role": "tool", "tool_call_id": block.id, "content": f"Error: {content}" if block.is_error else content}


def _call(block: ToolUse) -> JsonValue:
    """The keys are sorted: JSONB keeps no order, and the prefix must be the same bytes after a reload."""
    arguments = dumps(block.arguments, sort_keys=True).decode()
    return {"id": block.id, "type": "function", "function": {"name": legal_name(block.name), "arguments": arguments}}
