"""The scripted model server, speaking Ollama's own API.

It knows the models it was given, with what they can and how long their context may be. A prompt that does not fit is
refused when the request says that nothing may be left out, and left out in silence otherwise, which is a violation.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from tests.llm_chat import violation
from tests.llm_connection import Dialect
from tests.llm_server import LLMServer
from tests.llm_steps import Json, Reply, Request, Status, Step, cut

FIELDS = {"model", "messages", "stream", "tools", "options", "keep_alive", "truncate", "shift"}
CHARACTERS_PER_TOKEN = 4
BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")


def line(payload: Json) -> bytes:
    return orjson.dumps({"model": "m", "created_at": "2026-11-28T12:00:00Z", **payload}) + b"\n"


def message(**fields: Any) -> bytes:
    return line({"message": {"role": "assistant", "content": "", **fields}, "done": False})


def done(reason: str = "stop", prompt: int | None = 11, answer: int | None = 3) -> bytes:
    counts = {"prompt_eval_count": prompt, "eval_count": answer}
    known = {name: count for name, count in counts.items() if count is not None}
    return line({"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": reason, **known})


@dataclass
class LocalModel:
    """longest: tokens that it was made for. num_ctx: what its own file asks for."""

    can: list[str] = field(default_factory=lambda: ["completion", "tools"])
    longest: int = 131_072
    num_ctx: int | None = None
    size: int = 4_700_000_000

    def shown(self) -> Json:
        parameters = f'stop    "<|end|>"\nnum_ctx    {self.num_ctx}' if self.num_ctx else 'stop    "<|end|>"'
        info = {"general.architecture": "llama", "llama.context_length": self.longest}
        return {"capabilities": self.can, "model_info": info, "parameters": parameters}


class Local:
    """POST /api/chat."""

    path = "/api/chat"
    content_type = "application/x-ndjson"

    def violation(self, request: Request) -> str:
        """What only this dialect minds, and then what everybody does."""
        return _oddity(request.body) or violation(replace(request, body=_as_openai(request.body)))

    def refusal(self, problem: str) -> Status:
        return Status(400, body={"error": problem})

    def begin(self, reply: Reply, request: Request) -> list[bytes]:
        """All but the end of an answer."""
        sent = [message(thinking=piece) for piece in cut(reply.thinking, reply.chunk_size)]
        sent += [message(content=piece) for piece in cut(reply.text, reply.chunk_size)]
        return sent + [message(tool_calls=[each]) for each in _calls(reply, request)]

    def end(self, reply: Reply, request: Request) -> list[bytes]:
        return [done(*_end(reply))] if reply.error is None else [line({"error": reply.error})]

    def whole(self, reply: Reply, request: Request) -> Json:
        said: Json = {"role": "assistant", "content": reply.text, "tool_calls": _calls(reply, request)}
        last: Json = orjson.loads(done(*_end(reply)))
        return {**last, "message": {**said, "thinking": reply.thinking}}

    def sent(self, data: bytes) -> None:
        """Nothing of an answer has to come back as it was."""


class OllamaServer(LLMServer):
    """models: by name. loaded: the context with which each call had its model loaded. below: the path it is at."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.models = {"m": LocalModel()}
        self.loaded: list[int] = []
        self.below = ""
        self.dialects = (Local(), *self.dialects)

    def step_for(self, request: Request, dialect: Dialect | None) -> Step:
        if not request.path.startswith(f"{self.below}/api/"):
            return super().step_for(request, None if self.below else dialect)
        if request.path == f"{self.below}/api/tags":
            listed = [{"name": name, "size": model.size} for name, model in self.models.items()]
            return Status(200, body={"models": listed})
        if request.path == f"{self.below}/api/show":
            model = self.models.get(str(request.body.get("model")))
            return Status(200, body=model.shown()) if model else _unknown(request)
        refused = self._refused(request) if isinstance(dialect, Local) else None
        return refused or super().step_for(request, dialect)

    def _refused(self, request: Request) -> Status | None:
        model = self.models.get(str(request.body.get("model")))
        if model is None:
            return _unknown(request)
        if request.body.get("tools") and "tools" not in model.can:
            return Status(
                400, body={"error": f"registry.ollama.ai/library/{request.body['model']} does not support tools"}
            )
        window = int((request.body.get("options") or {}).get("num_ctx", 4096))
        self.loaded.append(window)
        if len(request.raw) // CHARACTERS_PER_TOKEN > window:
            if request.body.get("truncate", True):
                self.violations.append("the beginning was left out in silence")
            return Status(400, body={"error": "the input length exceeds the context length"})
        return None


def _calls(reply: Reply, request: Request) -> list[Json]:
    return [
        {"id": f"call_{len(request.raw)}_{at}", "function": {"name": name, "arguments": arguments}}
        for at, (name, arguments) in enumerate(reply.calls)
    ]


def _end(reply: Reply) -> tuple[str, int, int]:
    prompt, answer, *_ = reply.usage or (11, 3)
    return reply.finish or "stop", prompt, answer


def _unknown(request: Request) -> Status:
    return Status(404, body={"error": f"model '{request.body.get('model')}' not found"})


def _oddity(body: Json) -> str:
    """Return what only this dialect minds."""
    if unknown := set(body) - FIELDS:
        return f"there are no such fields: {sorted(unknown)}"
    if not isinstance(body.get("options"), dict):
        return "options is not an object"
    calls = [call for each in body.get("messages") or () for call in each.get("tool_calls") or ()]
    if any(not isinstance(each.get("content"), str) for each in body.get("messages") or ()):
        return "content is not a text"
    if any(not isinstance(call["function"]["arguments"], dict) for call in calls):
        return "arguments are not a JSON object"
    pictures = [picture for each in body.get("messages") or () for picture in each.get("images") or ()]
    if not all(isinstance(each, str) and BASE64.fullmatch(each) for each in pictures):
        return "a picture is not plain base64"
    results = [each for each in body.get("messages") or () if each.get("role") == "tool"]
    return "" if all(each.get("tool_name") for each in results) else "a result does not name its tool"


def _as_openai(body: Json) -> Json:
    """The same conversation as everybody checks it."""

    def call(each: Json) -> Json:
        function = each["function"]
        return {**each, "function": {**function, "arguments": orjson.dumps(function["arguments"]).decode()}}

    def said(each: Json) -> Json:
        if not each.get("tool_calls"):
            return each
        return {**each, "content": each["content"] or None, "tool_calls": [call(one) for one in each["tool_calls"]]}

    return {**body, "messages": [said(each) for each in body.get("messages") or ()]}
