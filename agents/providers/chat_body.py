"""Translate out: a ModelRequest as the body of a Chat Completions call.

The history is translated once, and so is what stands before it. A run's messages only grow, so each call after the
first sends bytes that are kept. The messages come last in the body, so that two calls of a run begin with the same
bytes.
"""

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from agents.providers.base import ModelRequest
from memory.encoding import dumps
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


type Translator = Callable[[Message, set[str]], list[dict[str, JsonValue]]]


@dataclass(slots=True)
class Piece:
    """Messages that follow each other, as they are sent.

    ids: of the tool calls in them.
    """

    messages: list[Message]
    sent: bytes
    ids: set[str]

    def __add__(self, following: "Piece") -> "Piece":
        sent = b",".join(filter(None, (self.sent, following.sent)))
        return Piece(self.messages + following.messages, sent, self.ids | following.ids)


@dataclass(slots=True)
class Translated:
    """What was sent of some messages, piece by piece, so that a history that goes on differently loses its end only.

    translate: says what may be sent of a message, and adds the ids of its calls to the set.
    """

    translate: Translator
    pieces: list[Piece] = field(default_factory=list)

    def follow(self, messages: Sequence[Message]) -> None:
        """Keep what says the same, translate the rest, many together: that is several times cheaper than one by one."""
        for start in range(self._keep(messages), len(messages), TOGETHER):
            self._add(self._piece(messages[start : start + TOGETHER]))

    def _keep(self, messages: Sequence[Message]) -> int:
        """Drop the pieces from the first that has changed; return how many messages stay. Comparing lists is cheap as
        long as they hold the very same messages, which is why those that were read anew take the place of the old."""
        kept = 0
        for at, piece in enumerate(self.pieces):
            now = list(messages[kept : kept + len(piece.messages)])
            if piece.messages != now:
                del self.pieces[at:]
                break
            piece.messages = now
            kept += len(now)
        return kept

    def _piece(self, messages: Sequence[Message]) -> Piece:
        ids: set[str] = set()
        sent = [item for message in messages for item in self.translate(message, ids)]
        return Piece(list(messages), dumps(sent)[1:-1] if sent else b"", ids)

    def _add(self, piece: Piece) -> None:
        """Let small pieces grow together: each step of a run brings one."""
        while self.pieces and len(self.pieces[-1].messages) <= min(len(piece.messages), TOGETHER // 2):
            piece = self.pieces.pop() + piece
        self.pieces.append(piece)


class ChatBody:
    """Serialises the calls of one run. Other dialects open the body otherwise and translate messages otherwise.

    limit_field: the server's name for the limit of output tokens.
    memo: under which name a request keeps what was made of its messages.
    """

    memo = MEMO

    def __init__(self, limit_field: str) -> None:
        self._limit_field = limit_field
        self._asked: tuple[ModelRequest, bool] | None = None
        self._opening = b""
        self._system: list[bytes] = []
        self._history = Translated(self._translator())

    @property
    def ids(self) -> set[str]:
        """Of all tool calls in the messages of the last request."""
        return set().union(*(piece.ids for piece in self._history.pieces))

    def serialise(self, request: ModelRequest, *, with_usage: bool) -> list[bytes]:
        """Return the body in pieces, because a long history costs more to join than everything else in its request.
        `with_usage` asks the server to count tokens, which some refuse."""
        asked = replace(request, messages=(), tools=tuple(request.tools)), with_usage
        if asked != self._asked:
            opening = dumps(self._head(request, with_usage))[:-1] + b',"messages":['
            self._asked, self._opening, self._system = asked, opening, _system(request)
        kept = request.memo.setdefault(self.memo, self._history) if request.memo is not None else self._history
        assert isinstance(kept, Translated)
        kept.follow(request.messages)
        self._history = kept
        sent = filter(None, (*self._system, *(piece.sent for piece in kept.pieces)))
        parts = [part for each in sent for part in (b",", each)]
        return [self._opening, *parts[1:], b"]}"]

    def _translator(self) -> Translator:
        return translate

    def _head(self, request: ModelRequest, with_usage: bool) -> dict[str, JsonValue]:
        head: dict[str, JsonValue] = {"model": request.model, "stream": True}
        if with_usage:
            head["stream_options"] = {"include_usage": True}
        if request.max_output_tokens is not None:
            head[self._limit_field] = request.max_output_tokens
        if request.tools:
            head["tools"] = [tool(spec) for spec in request.tools]
        return head


def _system(request: ModelRequest) -> list[bytes]:
    return [dumps({"role": "system", "content": request.system})] if request.system.strip() else []


def tool(spec: ToolSpec) -> JsonValue:
    function: dict[str, JsonValue] = {
        "name": legal_name(spec.name),
        "description": spec.description,
        "parameters": spec.schema,
    }
    return {"type": "function", "function": function}


def translate(message: Message, ids: set[str]) -> list[dict[str, JsonValue]]:
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
