"""The scripted model server's OpenAI dialect, as strict as the strictest vendor (cases.md, section 0)."""

import contextlib
import functools
import re
from collections.abc import Sequence

import orjson

from tests.llm_reasoning import Wants
from tests.llm_steps import NAME, Json, Reply, Request, Status, cut, event


def D(delta: Json, finish: str | None = None) -> bytes:
    """A chunk of the stream, written as in cases.md."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return event({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})


def F(reason: str) -> bytes:
    return D({}, reason)


def U(prompt: int, completion: int, cached: int | None = None, _written: int = 0) -> bytes:
    usage: Json = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return event({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": usage})


PICTURE = re.compile(r"data:image/(?:png|jpeg);base64,[A-Za-z0-9+/]+={0,2}")
DONE = b"data: [DONE]\n\n"


@functools.cache
def _text_chunks(field_name: str, text: str, size: int | None) -> tuple[bytes, ...]:
    return tuple(D({field_name: piece}) for piece in cut(text, size))


@functools.cache
def _argument_chunks(index: int, text: str, size: int | None) -> tuple[bytes, ...]:
    return tuple(D({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}) for piece in cut(text, size))


class Chat:
    """POST …/chat/completions."""

    path = "/chat/completions"
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self.wants: Wants | None = None

    def violation(self, request: Request) -> str:
        return violation(request) or (self.wants.violation(request.messages) if self.wants else "")

    def refusal(self, problem: str) -> Status:
        return Status(400, body={"error": {"message": problem, "type": "invalid_request_error"}})

    def begin(self, reply: Reply, request: Request) -> list[bytes]:
        """All but the end of an answer."""
        found = [D({"role": "assistant", "content": None if reply.calls else ""})]
        found += _text_chunks("reasoning_content", reply.thinking, reply.chunk_size)
        found += _text_chunks("content", reply.text, reply.chunk_size)
        calls = _calls(reply, request)
        if self.wants:
            self.wants.seal(calls)
        for index, call in enumerate(calls):
            function: Json = call["function"]
            found.append(D({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}))
            found += _argument_chunks(index, function["arguments"], reply.chunk_size)
        return found

    def end(self, reply: Reply, request: Request) -> list[bytes]:
        if reply.error is not None:
            return [event({"error": reply.error}), DONE]
        counted = [U(*_usage(reply, request))] if "stream_options" in request.body else []
        return [F(_finish(reply)), *counted, DONE]

    def whole(self, reply: Reply, request: Request) -> Json:
        prompt, completion = _usage(reply, request)[:2]
        message: Json = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = _calls(reply, request)
        if reply.thinking:
            message["reasoning_content"] = reply.thinking
        choice = {"index": 0, "message": message, "finish_reason": _finish(reply)}
        return {"id": "c1", "choices": [choice], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}

    def sent(self, data: bytes) -> None:
        """Remember what has to come back as it was."""
        if self.wants:
            self.wants.sent(data)


def _calls(reply: Reply, request: Request) -> list[Json]:
    texts = [each if isinstance(each, str) else orjson.dumps(each).decode() for _, each in reply.calls]
    return [
        {"id": f"call_{len(request.raw)}_{at}", "type": "function", "function": {"name": name, "arguments": text}}
        for at, ((name, _), text) in enumerate(zip(reply.calls, texts, strict=True))
    ]


def _usage(reply: Reply, request: Request) -> tuple[int, ...]:
    return reply.usage or (len(request.raw) // 4, max(1, len(reply.text.split()) + len(reply.calls)))


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


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


def _is_object(text: str) -> bool:
    with contextlib.suppress(orjson.JSONDecodeError):
        return isinstance(orjson.loads(text), dict)
    return False


def _picture_violation(role: object, parts: Sequence[Json]) -> str:
    if role != "user":
        return f"a picture in a message of {role}"
    addresses = [str(part.get("image_url", {}).get("url")) for part in parts]
    bad = [address[:40] for address in addresses if not PICTURE.fullmatch(address)]
    return f"not a picture: {bad[0]!r}" if bad else ""
