"""Translate out: a ModelRequest as the body of a Chat Completions call.

The history is translated once, and so is what stands before it. The messages come last in the body, so that two calls
of a run begin with the same bytes.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from pydantic import JsonValue

from agents.providers.base import Load, ModelRequest
from agents.providers.images import key_of, with_images
from agents.providers.names import legal_name
from agents.providers.translated import Piece, Translated
from memory.encoding import dumps
from memory.messages import File, Image, Message, Text, ToolResult, ToolUse
from tools.base import ToolSpec

NO_OUTPUT = "(no output)"
MEMO = "chat_body"

type Translate = Callable[[Message, set[str], dict[bytes, Image]], Sequence[JsonValue]]


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
        self._history = Translated(partial(_piece, self._translate()), _comma)

    @property
    def ids(self) -> set[str]:
        """Of all tool calls in the messages of the last request."""
        return self._history.ids

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
        between = [b","] if self._system and kept.sent else []
        return [self._opening, *self._system, *between, *self._with_images(kept, request.load), b"]}"]

    def _translate(self) -> Translate:
        """Return what says what may be sent of a message, and adds its calls and pictures."""
        return translate

    def _with_images(self, kept: Translated, load: Load | None) -> Iterator[bytes]:
        return with_images(kept, load, _image)

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


def _comma(_before: Piece, _after: Piece) -> bytes:
    return b","


def _piece(translate: Translate, messages: Sequence[Message]) -> Piece:
    ids: set[str] = set()
    images: dict[bytes, Image] = {}
    sent = [item for message in messages for item in translate(message, ids, images)]
    return Piece(list(messages), dumps(sent)[1:-1] if sent else b"", ids, images=images)


def translate(message: Message, ids: set[str], images: dict[bytes, Image]) -> list[JsonValue]:
    """Return what may be sent of a message, which may be nothing (HIS-04), and add its calls and pictures."""
    if any(block.type == "image" for block in message.blocks):
        return [{"role": message.role, "content": _parts(message, images)}]
    sent: list[JsonValue] = []
    texts: list[str] = []
    calls: list[JsonValue] = []
    for block in message.blocks:
        if block.type == "text" or block.type == "file":
            texts.append(block.text if block.type == "text" else block.told)
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


def _image(image: Image, content: str) -> JsonValue:
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{content}"}}


def _result(block: ToolResult) -> dict[str, JsonValue]:
    content = block.content if block.content.strip() else NO_OUTPUT
    return {"role": "tool", "tool_call_id": block.id, "content": f"Error: {content}" if block.is_error else content}


def _call(block: ToolUse) -> JsonValue:
    """The keys are sorted: JSONB keeps no order, and the prefix must be the same bytes after a reload."""
    arguments = dumps(block.arguments, sort_keys=True).decode()
    return {"id": block.id, "type": "function", "function": {"name": legal_name(block.name), "arguments": arguments}}
