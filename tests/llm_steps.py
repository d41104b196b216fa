"""What the scripted model server can be told to do, whatever dialect it is asked in."""

import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

type Json = dict[str, Any]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def event(payload: object) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(payload)


@functools.cache
def cut(text: str, size: int | None) -> tuple[str, ...]:
    """Pieces of `size` characters, or of one word each with the blank before it."""
    if size:
        return tuple(text[at : at + size] for at in range(0, len(text), size))
    return tuple(re.findall(r"\s*\S+\s*$|\s*\S+|\s+", text))


def text_of(content: object) -> str:
    """Return the text of a message's content, which may be a list of parts."""
    if isinstance(content, list):
        return "\n\n".join(str(part["text"]) for part in content if part.get("type") == "text")
    return str(content)


@dataclass(frozen=True)
class Request:
    """A request as it came. `body` is empty when it was no JSON object."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    body: Json

    @property
    def messages(self) -> list[Json]:
        return cast(list[Json], self.body.get("messages") or [])

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def first_user_text(self) -> str:
        return next((text for message in self.messages for who, text in _said(message) if who == "user"), "")

    @property
    def last_user_text(self) -> str:
        return next((text for who, text in self._backwards() if who == "user"), "")

    @property
    def ends_with_user(self) -> bool:
        return next(self._backwards(), ("", ""))[0] == "user"

    @property
    def results(self) -> int:
        """How many tool results came since the last user message."""
        found = 0
        for who, _ in self._backwards():
            if who == "user":
                break
            found += who == "tool"
        return found

    def _backwards(self) -> Iterator[tuple[str, str]]:
        return (said for message in reversed(self.messages) for said in reversed(_said(message)))


def _said(message: Json) -> list[tuple[str, str]]:
    """Who says what in a message: results of tools may come in one of the user, before the user's own words."""
    content, role = message.get("content"), str(message.get("role"))
    if not isinstance(content, list):
        return [(role, str(content))]
    results = [("tool", text_of(part.get("content"))) for part in content if part.get("type") == "tool_result"]
    text = text_of(content)
    return [*results, (role, text)] if text or not results else results


@dataclass
class Reply:
    """A whole answer. `calls` are (name, arguments); arguments may be a string to be sent as it is.

    usage: (prompt, completion), or with cached third and with newly cached fourth, both part of the prompt; estimated
        when left out.
    redacted: a thought that is not shown, in dialects that have such. error: told in the place of the end.
    is_whole: one document, as servers send it that ignore `stream`. chunk_size: characters per chunk, else words.
    first_token, gap: seconds before the first and between chunks. hold: wait in mid-stream until it is set.
    """

    text: str = ""
    calls: Sequence[tuple[str, Json | str]] = ()
    usage: tuple[int, ...] | None = None
    thinking: str = ""
    finish: str = ""
    chunk_size: int | None = None
    first_token: float | None = None
    gap: float | None = None
    hold: threading.Event | None = None
    redacted: str = ""
    error: object = None
    is_whole: bool = False


@dataclass
class Raw:
    """A stream of exactly these writes, `gap` seconds apart, then the end of the body.

    content_type: the dialect's own when empty.
    """

    writes: Iterable[bytes]
    gap: float = 0.0
    content_type: str = ""


@dataclass
class Status:
    """An answer without a stream. `body` may be an object, which becomes JSON."""

    code: int
    headers: dict[str, str] = field(default_factory=dict)
    body: object = b""


@dataclass
class Drop:
    """Send `after` (as a stream; of a Reply all but its end) and break the connection; with nothing in it, break it
    before any answer."""

    after: Sequence[bytes] | Reply = ()


@dataclass
class Hang:
    """Send `after` (as for Drop) and then nothing for `seconds`."""

    seconds: float
    after: Sequence[bytes] | Reply = ()


type Step = Reply | Raw | Status | Drop | Hang
type Scripted = Step | Callable[[Request], Step]
