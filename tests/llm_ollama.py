"""The scripted model server, speaking Ollama's own API.

It knows the models it was given, with what they can and how long their context may be. A prompt that does not fit is
refused when the request says that nothing may be left out, and left out in silence otherwise, which is a violation.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from tests.llm_script import Json, Raw, Reply, Request, Status, Step, _cut
from tests.llm_server import LLMServer

FIELDS = {"model", "messages", "stream", "tools", "options", "keep_alive", "truncate", "shift"}
CHARACTERS_PER_TOKEN = 4


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


class OllamaServer(LLMServer):
    """models: by name. loaded: the context with which each call had its model loaded."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.models = {"m": LocalModel()}
        self.loaded: list[int] = []

    def step_for(self, request: Request) -> Step:
        if request.path == "/api/tags":
            listed = [{"name": name, "size": model.size} for name, model in self.models.items()]
            return Status(200, body={"models": listed})
        if request.path == "/api/show":
            model = self.models.get(str(request.body.get("model")))
            return Status(200, body=model.shown()) if model else _unknown(request)
        if request.path != "/api/chat":
            return super().step_for(request)
        return self._refused(request) or self._answer(request)

    def _answer(self, request: Request) -> Step:
        """What any dialect would be answered, in the lines of this one."""
        step = super().step_for(replace(request, path="/v1/chat/completions", body=_as_openai(request.body)))
        self.requests[-1] = request
        if isinstance(step, Status) and isinstance(step.body, dict):
            error = step.body.get("error", step.body)
            return replace(step, body={"error": error.get("message") if isinstance(error, dict) else error})
        return Raw(lines(step), content_type="application/x-ndjson") if isinstance(step, Reply) else step

    def _refused(self, request: Request) -> Status | None:
        model = self.models.get(str(request.body.get("model")))
        if model is None:
            return _unknown(request)
        if problem := _oddity(request.body):
            self.violations.append(problem)
            return Status(400, body={"error": problem})
        if request.body.get("tools") and "tools" not in model.can:
            return Status(
                400, body={"error": f"registry.ollama.ai/library/{request.body['model']} does not support tools"}
            )
        window = int(request.body["options"].get("num_ctx", 4096))
        self.loaded.append(window)
        if len(request.raw) // CHARACTERS_PER_TOKEN > window:
            if request.body.get("truncate", True):
                self.violations.append("the beginning was left out in silence")
            return Status(400, body={"error": "the input length exceeds the context length"})
        return None


def lines(reply: Reply) -> list[bytes]:
    sent = [message(thinking=piece) for piece in _cut(reply.thinking, reply.chunk_size)]
    sent += [message(content=piece) for piece in _cut(reply.text, reply.chunk_size)]
    for name, arguments in reply.calls:
        sent.append(message(tool_calls=[{"function": {"name": name, "arguments": arguments}}]))
    prompt, answer, *_ = reply.usage or (11, 3)
    return [*sent, done(reply.finish or "stop", prompt, answer)]


def _unknown(request: Request) -> Status:
    return Status(404, body={"error": f"model '{request.body.get('model')}' not found"})


def _oddity(body: Json) -> str:
    """Return what only this dialect minds."""
    if unknown := set(body) - FIELDS:
        return f"there are no such fields: {sorted(unknown)}"
    if not isinstance(body.get("options"), dict):
        return "options is not an object"
    calls = [call for each in body.get("messages") or () for call in each.get("tool_calls") or ()]
    if any(not isinstance(call["function"]["arguments"], dict) for call in calls):
        return "arguments are not a JSON object"
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
