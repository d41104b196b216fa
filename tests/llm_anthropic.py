"""The scripted model server's Anthropic dialect, as strict as the vendor (cases.md, section 0)."""

import base64
import hashlib
import itertools
from collections.abc import Mapping, Sequence

import orjson

from tests.llm_anthropic_rules import violation
from tests.llm_steps import Json, Reply, Request, Status, cut
from tests.llm_thoughts import Thoughts


def A(kind: str, fields: Json | None = None) -> bytes:
    """An event of the stream, written as in cases.md."""
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **(fields or {})}))


def started(usage: dict[str, int]) -> bytes:
    return A("message_start", {"message": {"type": "message", "role": "assistant", "content": [], "usage": usage}})


def block(index: int, opened: Mapping[str, object], *deltas: Mapping[str, object]) -> bytes:
    events = [A("content_block_start", {"index": index, "content_block": opened})]
    events += [A("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
    return b"".join([*events, A("content_block_stop", {"index": index})])


def stopped(reason: str, output: int = 15, **delta: object) -> bytes:
    last = {"delta": {"stop_reason": reason, **delta}, "usage": {"output_tokens": output}}
    return A("message_delta", last) + A("message_stop")


def text(index: int, *pieces: str) -> bytes:
    return block(index, {"type": "text", "text": ""}, *({"type": "text_delta", "text": piece} for piece in pieces))


class Messages:
    """POST …/messages."""

    path = "/messages"
    content_type = "text/event-stream"

    def __init__(self) -> None:
        self.thoughts = Thoughts()

    def violation(self, request: Request) -> str:
        return violation(request) or self.thoughts.violation(request.messages)

    def refusal(self, problem: str) -> Status:
        return Status(400, body={"type": "error", "error": {"type": "invalid_request_error", "message": problem}})

    def begin(self, reply: Reply, request: Request) -> list[bytes]:
        """All but the end of an answer."""
        found = [A("message_start", {"message": {**_message(request), "usage": _usage(reply, request, output=1)}})]
        for index, block in enumerate(_blocks(reply, request)):
            found += _block_events(index, block, reply.chunk_size)
        return found

    def end(self, reply: Reply, request: Request) -> list[bytes]:
        if reply.error is not None:
            return [A("error", {"error": reply.error})]
        stop = {"stop_reason": _stop(reply), "stop_sequence": None}
        usage = {"output_tokens": _usage(reply, request)["output_tokens"]}
        return [A("message_delta", {"delta": stop, "usage": usage}), A("message_stop")]

    def whole(self, reply: Reply, request: Request) -> Json:
        content = [_given(block) for block in _blocks(reply, request)]
        usage = _usage(reply, request)
        return {**_message(request), "content": content, "stop_reason": _stop(reply), "usage": usage}

    def sent(self, data: bytes) -> None:
        """Remember the thoughts of an answer, which have to come back as they are."""
        self.thoughts.sent(data)


def _message(request: Request) -> Json:
    model = request.body.get("model")
    return {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": None}


def _blocks(reply: Reply, request: Request) -> list[Json]:
    found: list[Json] = []
    if reply.thinking:
        found.append({"type": "thinking", "thinking": reply.thinking, "signature": _seal(reply.thinking)})
    if reply.redacted:
        found.append({"type": "redacted_thinking", "data": _seal(reply.redacted)})
    if reply.text:
        found.append({"type": "text", "text": reply.text})
    for at, (name, arguments) in enumerate(reply.calls):
        found.append({"type": "tool_use", "id": f"toolu_{len(request.raw)}_{at}", "name": name, "input": arguments})
    return found


def _given(block: Json) -> Json:
    """A block as it stands in a document, whose arguments are always an object."""
    arguments = block.get("input")
    return {**block, "input": orjson.loads(arguments)} if isinstance(arguments, str) else block


def _block_events(index: int, block: Json, size: int | None) -> list[bytes]:
    start, deltas = _opened(block, size)
    pings = [A("ping")] if not index else []
    events = [A("content_block_delta", {"index": index, "delta": delta}) for delta in deltas]
    opened = A("content_block_start", {"index": index, "content_block": start})
    return [opened, *pings, *events, A("content_block_stop", {"index": index})]


def _opened(block: Json, size: int | None) -> tuple[Json, Sequence[Json]]:
    """Return the block as it begins, and what follows."""
    match block["type"]:
        case "thinking":
            pieces = [{"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"], size)]
            seal = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [*pieces, seal]
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in cut(block["text"], size)]
        case "tool_use":
            given = block["input"]
            text = given if isinstance(given, str) else orjson.dumps(given).decode()
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *cut(text, size))]
            return {**block, "input": {}}, deltas
        case _:
            return block, []


def _usage(reply: Reply, request: Request, output: int | None = None) -> Json:
    estimated = (len(request.raw) // 4, max(1, len(reply.text.split()) + len(reply.calls)))
    prompt, completion, *cached = reply.usage or estimated
    names = ("cache_read_input_tokens", "cache_creation_input_tokens")
    beside = dict(itertools.zip_longest(names, cached)) if cached else {}
    return {"input_tokens": prompt - sum(cached), "output_tokens": output or completion, **beside}


def _stop(reply: Reply) -> str:
    ordinary = "tool_use" if reply.calls else "end_turn"
    return {"length": "max_tokens", "content_filter": "refusal"}.get(reply.finish, reply.finish or ordinary)


def _seal(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
