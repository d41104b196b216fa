"""What the scripted model server can be told to do, and what it refuses (cases.md, section 0)."""

import contextlib
import functools
import itertools
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

type Json = dict[str, Any]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
PICTURE = re.compile(r"data:image/(?:png|jpeg);base64,[A-Za-z0-9+/]+={0,2}")


def event(payload: object) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(payload)


def D(delta: Json, finish: str | None = None) -> bytes:
    """A chunk of the stream, written as in cases.md."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def F(reason: str) -> bytes:
    return D({}, reason)


def U(prompt: int, completion: int, cached: int | None = None) -> bytes:
    usage: Json = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return event({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage})


DONE = b"data: [DONE]\n\n"


@functools.cache
def _cut(text: str, size: int | None) -> tuple[str, ...]:
    """Pieces of `size` characters, or of one word each with the blank before it."""
    if size:
        return tuple(text[at : at + size] for at in range(0, len(text), size))
    return tuple(re.findall(r"\s*\S+\s*$|\s*\S+|\s+", text))


@functools.cache
def _text_chunks(field_name: str, text: str, size: int | None) -> tuple[bytes, ...]:
    return tuple(D({field_name: piece}) for piece in _cut(text, size))


@functools.cache
def _argument_chunks(index: int, text: str, size: int | None) -> tuple[bytes, ...]:
    return tuple(D({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in _cut(text, size))


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
        return next((str(message["content"]) for message in self.messages if message.get("role") == "user"), "")

    @property
    def last_user_text(self) -> str:
        return next((str(message["content"]) for message in reversed(self.messages) if message["role"] == "user"), "")

    @property
    def results(self) -> int:
        """How many tool results came since the last user message."""
        turn = itertools.takewhile(lambda message: message.get("role") != "user", reversed(self.messages))
        return sum(message.get("role") == "tool" for message in turn)


@dataclass
class Reply:
    """A whole answer. `calls` are (name, arguments); arguments may be a string to be sent as it is.

    usage: (prompt, completion) or with cached third; estimated when left out. chunk_size: characters per chunk, else
    words. first_token, gap: seconds before the first and between chunks. hold: wait in mid-stream until it is set.
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

    def chunks(self, request: Request) -> list[bytes]:
        unique = len(request.raw)
        found = [D({"role": "assistant", "content": None if self.calls else ""})]
        found += _text_chunks("reasoning_content", self.thinking, self.chunk_size)
        found += _text_chunks("content", self.text, self.chunk_size)
        for index, (name, arguments) in enumerate(self.calls):
            text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
            head = {"index": index, "id": f"call_{unique}_{index}", "type": "function"}
            found.append(D({"tool_calls": [{**head, "function": {"name": name, "arguments": ""}}]}))
            found += _argument_chunks(index, text, self.chunk_size)
        found.append(F(self.finish or ("tool_calls" if self.calls else "stop")))
        if "stream_options" in request.body:
            found.append(U(*(self.usage or (len(request.raw) // 4, max(1, len(found) - 2)))))
        return [*found, DONE]


@dataclass
class Raw:
    """A stream of exactly these writes, `gap` seconds apart, then the end of the body."""

    writes: Iterable[bytes]
    gap: float = 0.0
    content_type: str = "text/event-stream"


@dataclass
class Status:
    """An answer without a stream. `body` may be an object, which becomes JSON."""

    code: int
    headers: dict[str, str] = field(default_factory=dict)
    body: object = b""


@dataclass
class Drop:
    """Send `after` (as a stream) and break the connection; with nothing in it, break it before any answer."""

    after: Sequence[bytes] = ()


@dataclass
class Hang:
    """Send `after` (as a stream) and then nothing for `seconds`."""

    seconds: float
    after: Sequence[bytes] = ()


type Step = Reply | Raw | Status | Drop | Hang
type Scripted = Step | Callable[[Request], Step]


def violation(request: Request) -> str:
    """Return what a strict vendor would refuse in the request, empty when nothing (cases.md section 0)."""
    if not request.messages:
        return "the body is not valid UTF-8 JSON with messages"
    if sum(message.get("role") == "system" for message in request.messages) > 1:
        return "two system messages"
    names = [tool["function"]["name"] for tool in request.body.get("tools") or ()]
    bad = [name for name in names if not NAME.fullmatch(name)]
    return f"illegal tool name {bad[0]!r}" if bad else _history_violation(request.messages)


def _history_violation(messages: Sequence[Json]) -> str:
    seen: set[str] = set()
    owed: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in owed:
                return f"a result without a call: {message.get('tool_call_id')!r}"
            owed.discard(message["tool_call_id"])
        elif owed:
            return f"tool calls without a result: {sorted(owed)}"
        if problem := _message_violation(message, seen):
            return problem
        owed |= {call["id"] for call in message.get("tool_calls") or ()}
    return f"tool calls without a result: {sorted(owed)}" if owed else ""


def _message_violation(message: Json, seen: set[str]) -> str:
    content, calls = message.get("content"), message.get("tool_calls") or ()
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [part.get("text") for part in parts if part.get("type") == "text"]
    if any(not str(text or "").strip() for text in texts or [""]) and not (calls and content is None):
        return f"blank content in a message of {message.get('role')}"
    if pictures := [part for part in parts if part.get("type") != "text"]:
        return _picture_violation(message.get("role"), pictures)
    for call in calls:
        if call["id"] in seen:
            return f"the id {call['id']!r} is used twice"
        seen.add(call["id"])
        if not NAME.fullmatch(call["function"]["name"]):
            return f"illegal tool name {call['function']['name']!r}"
        arguments = call["function"]["arguments"]
        if not isinstance(arguments, str) or not _is_object(arguments):
            return f"arguments are not a JSON object: {arguments!r}"
    return ""


def _picture_violation(role: object, parts: Sequence[Json]) -> str:
    if role != "user":
        return f"a picture in a message of {role}"
    addresses = [str(part.get("image_url", {}).get("url")) for part in parts]
    bad = [address[:40] for address in addresses if not PICTURE.fullmatch(address)]
    return f"not a picture: {bad[0]!r}" if bad else ""


def _is_object(text: str) -> bool:
    with contextlib.suppress(orjson.JSONDecodeError):
        return isinstance(orjson.loads(text), dict)
    return False


BENCH_CALLS = (
    ("search_notes", {"query": "half marathon"}),
    ("create_note", {"title": "Half marathon in May", "body": "Shoes, a plan of twelve weeks, a place to sleep."}),
)
BENCH_TEXT = " ".join(f"word{number}" for number in range(60))


def bench_step(request: Request) -> Step:
    if request.results < len(BENCH_CALLS):
        return Reply(calls=[BENCH_CALLS[request.results]], chunk_size=40)
    return Reply(BENCH_TEXT)
