"""What Anthropic refuses in a request (cases.md, section 0), thoughts apart."""

import re
from collections.abc import Iterator, Sequence

from tests.llm_steps import NAME, Json, Request

FIELDS = {"model", "max_tokens", "stream", "system", "tools", "messages", "cache_control", "thinking", "tool_choice"}
MARKS = 4
IDENTITY = re.compile(r"[a-zA-Z0-9_-]+")
KINDS = {
    "user": {"text": {"text"}, "tool_result": {"tool_use_id", "content", "is_error"}, "image": {"source"}},
    "assistant": {
        "text": {"text"},
        "thinking": {"thinking", "signature"},
        "redacted_thinking": {"data"},
        "tool_use": {"id", "name", "input"},
    },
}


def violation(request: Request) -> str:
    """Return what the vendor would refuse in the request, empty when nothing."""
    return next(_violations(request), "")


def _violations(request: Request) -> Iterator[str]:
    body = request.body
    if not request.messages:
        yield "the body is not valid UTF-8 JSON with messages"
    if "anthropic-version" not in request.headers:
        yield "anthropic-version: header is required"
    if extra := set(body) - FIELDS:
        yield f"{sorted(extra)[0]}: Extra inputs are not permitted"
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        yield "max_tokens: Field required"
    if (marks := request.raw.count(b'"cache_control":{')) > MARKS:
        yield f"A maximum of {MARKS} blocks with cache_control may be provided. Found {marks}."
    system = body.get("system", "-")
    for text in [system] if isinstance(system, str) else [block["text"] for block in system]:
        if not text.strip():
            yield "system: text content blocks must be non-empty"
    yield from _tools(body.get("tools") or ())
    yield from _turns(request.messages)
    yield from _calls(request.messages)


def _tools(tools: Sequence[Json]) -> Iterator[str]:
    names = [tool.get("name", "") for tool in tools]
    if len(set(names)) < len(names):
        yield "tools: Tool names must be unique."
    for tool in tools:
        if not NAME.fullmatch(tool.get("name", "")):
            yield f"illegal tool name {tool.get('name')!r}"
        if tool.get("input_schema", {}).get("type") != "object":
            yield "tools: input_schema does not describe an object"


def _turns(messages: Sequence[Json]) -> Iterator[str]:
    for at, message in enumerate(messages):
        if message.get("role") != ("assistant" if at % 2 else "user"):
            yield "messages: roles must alternate between user and assistant, beginning with user"
        yield from _content(message)
    if len(messages) % 2 == 0:
        yield "messages: the last must be of the user"


def _content(message: Json) -> Iterator[str]:
    content, kinds = message.get("content"), KINDS.get(str(message.get("role")), {})
    if not isinstance(content, list) or not content:
        yield f"blank content in a message of {message.get('role')}"
        return
    for block in content:
        kind = str(block.get("type"))
        if kind not in kinds or set(block) - kinds[kind] - {"type", "cache_control"}:
            yield f"a message of {message.get('role')} may not have a block {kind!r} of {sorted(block)}"
        elif any(isinstance(block.get(name), str) and not block[name].strip() for name in ("text", "content")):
            yield f"blank content in a message of {message.get('role')}"
    if content[-1].get("type") in ("thinking", "redacted_thinking"):
        yield "The final block in an assistant message cannot be `thinking`."


def _calls(messages: Sequence[Json]) -> Iterator[str]:
    """Each call is answered once, in the message right after it and before anything else there."""
    seen: set[str] = set()
    owed: list[str] = []
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        results = [block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"]
        if sorted(map(str, results)) != sorted(owed):
            yield f"`tool_use` ids {owed} and `tool_result` blocks {results} do not match"
        if any(block.get("type") != "tool_result" for block in blocks[: len(results)]):
            yield "`tool_result` blocks come first"
        calls = [block for block in blocks if block.get("type") == "tool_use"]
        owed = [call["id"] for call in calls]
        for call in calls:
            yield from _call(call, seen)
    if owed:
        yield f"`tool_use` ids {owed} without `tool_result`"


def _call(call: Json, seen: set[str]) -> Iterator[str]:
    if call["id"] in seen or not IDENTITY.fullmatch(call["id"]):
        yield f"the id {call['id']!r} is used twice, or none"
    seen.add(call["id"])
    if not NAME.fullmatch(call["name"]):
        yield f"illegal tool name {call['name']!r}"
    if not isinstance(call["input"], dict):
        yield f"input is not a JSON object: {call['input']!r}"
