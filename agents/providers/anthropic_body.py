"""Translate out: a ModelRequest as the body of a Messages call.

What does not change comes first and the messages last, so that two calls of a conversation begin with the same bytes.
Two marks make the vendor cache them: one ends system and tools, and the one of the whole request moves with its end
without a byte of the history changing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from agents.providers.base import ModelRequest
from agents.providers.images import key_of, with_images
from agents.providers.known_models import known
from agents.providers.names import legal_id, legal_name
from agents.providers.translated import Piece, Translated
from memory.encoding import dumps
from memory.messages import Block, File, Image, Message, Text, Thinking, ToolResult, ToolUse
from tools.base import ToolSpec

DEFAULT_OUTPUT_TOKENS = 16_000
"""The limit of a reply, thoughts included, when neither the request says one nor the table of models knows it: the
vendor wants one, and every model of its takes this."""
NO_OUTPUT = "(no output)"
MEMO = "messages_body"
_CACHED: dict[str, JsonValue] = {"type": "ephemeral"}


@dataclass(slots=True)
class Sent:
    """What was sent of a conversation. withheld: the seals of thoughts that the server does not take any more."""

    history: Translated
    withheld: set[str] = field(default_factory=set)


class MessagesBody:
    """Serialises the calls of one run.

    maker: whose thoughts go there.
    """

    def __init__(self, maker: str) -> None:
        self._maker = maker
        self._memo = f"{MEMO} {maker}"
        self._asked: ModelRequest | None = None
        self._opening = b""
        self._sent = self._nothing(set())

    @property
    def ids(self) -> set[str]:
        """Of all tool calls in the messages of the last request."""
        return self._sent.history.ids

    def serialise(self, request: ModelRequest) -> list[bytes]:
        """Return the body in pieces, because a long history costs more to join than everything else in its request."""
        asked = replace(request, messages=(), tools=tuple(request.tools))
        if asked != self._asked:
            self._asked, self._opening = asked, _open(request)
        kept = request.memo.setdefault(self._memo, self._sent) if request.memo is not None else self._sent
        assert isinstance(kept, Sent)
        self._sent = kept
        kept.history.follow(request.messages)
        pieces = kept.history.sent
        begun = [_begin(pieces[0].opens), *with_images(kept.history, request.load, _image), b"]}"] if pieces else []
        return [self._opening, *begun, b"]}"]

    def withhold(self, messages: Sequence[Message]) -> bool:
        """Send none of the thoughts in `messages` again. Returns whether any was sent."""
        sent = self._sent
        seals = {block.signature for each in messages for block in each.blocks if isinstance(block, Thinking)}
        fresh = {seal for seal in seals if seal} - sent.withheld
        sent.withheld |= fresh
        sent.history = self._nothing(sent.withheld).history
        return bool(fresh)

    def _nothing(self, withheld: set[str]) -> Sent:
        return Sent(Translated(lambda messages: _piece(messages, self._maker, withheld), _joint), withheld)


def _open(request: ModelRequest) -> bytes:
    most = request.max_output_tokens or known("anthropic", request.model).output_limit
    head: dict[str, JsonValue] = {
        "model": request.model,
        "max_tokens": most or DEFAULT_OUTPUT_TOKENS,
        "stream": True,
        "cache_control": _CACHED,
    }
    if request.tools:
        head["tools"] = [_tool(spec) for spec in request.tools]
    if request.system.strip():
        head["system"] = [{"type": "text", "text": request.system, "cache_control": _CACHED}]
    return dumps(head)[:-1] + b',"messages":['


def _tool(spec: ToolSpec) -> JsonValue:
    return {"name": legal_name(spec.name), "description": spec.description, "input_schema": spec.schema}


def _begin(role: str) -> bytes:
    return b'{"role":"%b","content":[' % role.encode()


def _joint(before: Piece, after: Piece) -> bytes:
    """Neighbours of one role are one message: the vendor wants the roles to take turns."""
    return b"," if before.closes == after.opens else b"]}," + _begin(after.opens)


def _piece(messages: Sequence[Message], maker: str, withheld: set[str]) -> Piece:
    """The keys are sorted: JSONB keeps no order, and the prefix must be the same bytes after a reload."""
    whole = Piece(list(messages), b"", {call.id for message in messages for call in message.calls})
    told: list[bytes] = []
    for message in messages:
        if not (blocks := _blocks(message, maker, withheld)):
            continue
        role = "assistant" if message.role == "assistant" else "user"
        whole.images |= {key_of(block): block for block in message.blocks if isinstance(block, Image)}
        one = Piece([], dumps(blocks, sort_keys=True)[1:-1], set(), role, role)
        told += [_joint(whole, one), one.sent] if told else [one.sent]
        whole.opens, whole.closes = whole.opens or role, role
    whole.sent = b"".join(told)
    return whole


def _blocks(message: Message, maker: str, withheld: set[str]) -> list[JsonValue]:
    """What may be sent of a message, which may be nothing (HIS-04). A thought is never the last of it."""
    kept = [block for block in message.blocks if _counts(block, maker, withheld)]
    while kept and isinstance(kept[-1], Thinking):
        kept.pop()
    return [sent for block in kept for sent in _sent(block)]


def _counts(block: Block, maker: str, withheld: set[str]) -> bool:
    match block:
        case Text(text=text):
            return bool(text.strip())
        case Thinking():
            return bool(block.signature) and block.maker == maker and block.signature not in withheld
        case _:
            return True


def _sent(block: Block) -> list[JsonValue]:
    """A picture is told by its name, and has a key in its place."""
    if isinstance(block, Image):
        return [{"type": "text", "text": block.told}, key_of(block).decode()]
    return [_block(block)]


def _image(image: Image, content: str) -> JsonValue:
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": content}}


def _block(block: Text | File | Thinking | ToolUse | ToolResult) -> JsonValue:
    match block:
        case File():
            return {"type": "text", "text": block.told}
        case Text():
            return {"type": "text", "text": block.text}
        case Thinking(redacted=True):
            return {"type": "redacted_thinking", "data": block.signature}
        case Thinking():
            return {"type": "thinking", "thinking": block.text, "signature": block.signature}
        case ToolUse():
            name = legal_name(block.name)
            return {"type": "tool_use", "id": legal_id(block.id), "name": name, "input": block.arguments}
        case ToolResult():
            return _result(block)


def _result(block: ToolResult) -> JsonValue:
    content = block.content if block.content.strip() else NO_OUTPUT
    result: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": legal_id(block.id), "content": content}
    return {**result, "is_error": True} if block.is_error else result
