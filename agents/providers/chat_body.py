"""Translate out: a ModelRequest as the body of a Chat Completions call.

The history is translated once, and so is what stands before it. The messages come last in the body, so that two calls
of a run begin with the same bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pydantic import JsonValue

from agents.providers.base import Load, ModelRequest
from agents.providers.chat_messages import Back, ChatMessages, Translate
from agents.providers.images import with_images
from agents.providers.names import legal_name
from agents.providers.translated import Piece, Translated
from memory.encoding import dumps
from memory.messages import Image, Message
from tools.base import ToolSpec

MEMO = "chat_body"


class ChatBody:
    """Serialises the calls of one run. Other dialects open the body otherwise and translate messages otherwise.

    limit_field: the server's name for the limit of output tokens.
    maker: whose thoughts go there; empty for nobody's.
    memo: under which name a request keeps what was made of its messages.
    """

    memo = MEMO

    def __init__(self, limit_field: str, maker: str = "") -> None:
        self._limit_field = limit_field
        self._maker = maker
        self._asked: tuple[ModelRequest, bool] | None = None
        self._opening = b""
        self._system: list[bytes] = []
        self._own: dict[str, object] = {}
        self._history = self._kept(self._own, Back.OWN)

    @property
    def ids(self) -> set[str]:
        """Of all tool calls in the messages of the last request."""
        return self._history.ids

    def serialise(self, request: ModelRequest, *, with_usage: bool, back: Back = Back.OWN) -> list[bytes]:
        """Return the body in pieces, because a long history costs more to join than everything else in its request.
        `with_usage` asks the server to count tokens, which some refuse; `back` says which thoughts it gets back."""
        asked = replace(request, messages=(), tools=tuple(request.tools)), with_usage
        if asked != self._asked:
            opening = dumps(self._head(request, with_usage))[:-1] + b',"messages":['
            self._asked, self._opening, self._system = asked, opening, _system(request)
        self._history = kept = self._kept(self._own if request.memo is None else request.memo, back)
        kept.follow(request.messages)
        between = [b","] if self._system and kept.sent else []
        return [self._opening, *self._system, *between, *self._with_images(kept, request.load), b"]}"]

    def _kept(self, memo: dict[str, object], back: Back) -> Translated:
        """What was made of the messages; what was made of them otherwise for the same server is let go."""
        name = f"{self.memo} {self._maker} "
        if (kept := memo.get(name + back)) is None:
            for other in Back:
                memo.pop(name + other, None)
            kept = memo[name + back] = Translated(partial(_piece, self._translate(back)), _comma)
        assert isinstance(kept, Translated)
        return kept

    def _translate(self, back: Back) -> Translate:
        """Return what says what may be sent of a message, and adds its calls and pictures."""
        return ChatMessages(self._maker, back).translate

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


def _image(image: Image, content: str) -> JsonValue:
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{content}"}}
