"""The scripted model server as OpenRouter: what a call has cost, a choice among vendors, what is said of each model."""

from dataclasses import dataclass, replace
from typing import Any

import orjson

from tests.llm_chat import Chat
from tests.llm_server import LLMServer
from tests.llm_steps import Json, Reply, Request, Status, event

PREFERENCES = {"order", "allow_fallbacks", "require_parameters", "data_collection", "only", "ignore", "sort", "zdr"}


@dataclass
class Routed(Reply):
    """cost: in credits, as the number that stands in the JSON. upstream: with a key of one's own for the vendor."""

    cost: float = 0.0
    upstream: float | None = None
    written: int = 0

    def counted(self) -> Json:
        prompt, completion, *cached = self.usage or (100, 10, 0)
        usage: Json = {"prompt_tokens": prompt, "completion_tokens": completion, "cost": self.cost}
        usage["prompt_tokens_details"] = {"cached_tokens": (cached or [0])[0], "cache_write_tokens": self.written}
        if self.upstream is not None:
            usage |= {"is_byok": True, "cost_details": {"upstream_inference_cost": self.upstream}}
        return usage


class Router(Chat):
    """Counts always; a field that it does not know is a violation."""

    def violation(self, request: Request) -> str:
        unknown = set(request.body.get("provider") or {}) - PREFERENCES
        if unknown or request.body.get("provider") == {}:
            return f"unknown preferences {sorted(unknown)}"
        return super().violation(request)

    def refusal(self, problem: str) -> Status:
        return Status(400, body=refusal(400, problem))

    def begin(self, reply: Reply, request: Request) -> list[bytes]:
        return [b": OPENROUTER PROCESSING\n\n", *super().begin(reply, request)]

    def end(self, reply: Reply, request: Request) -> list[bytes]:
        *told, last = super().end(reply, replace(request, body={}))
        if reply.error is not None:
            return [*told, last]
        return [*told, event({"id": "g", "choices": [], "usage": _routed(reply).counted()}), last]

    def whole(self, reply: Reply, request: Request) -> Json:
        return {**super().whole(reply, request), "usage": _routed(reply).counted()}


def _routed(reply: Reply) -> Routed:
    return reply if isinstance(reply, Routed) else Routed(**vars(reply))


class OpenRouterServer(LLMServer):
    """The server as a router. It has `m`, of which nothing is said, until others are offered."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.pages["/api/v1/models"] = {"data": [{"id": "m"}]}
        self._offered: list[Json] = []
        self.dialects = (Router(), *self.dialects)

    @property
    def url(self) -> str:
        return f"{self.address}/api/v1"

    def offer(self, model: str, *, tools: bool = True, images: bool = False, context: int = 200_000) -> None:
        """Have a model, served by two vendors that differ."""
        parameters = ["max_tokens", "temperature", *(["tools", "tool_choice"] if tools else [])]
        small = {"provider_name": "Small", "context_length": context // 2, "supported_parameters": ["max_tokens"]}
        large = {
            "provider_name": "Large",
            "context_length": context,
            "max_completion_tokens": 32_000,
            "supported_parameters": parameters,
        }
        senses = ["text", "image"] if images else ["text"]
        about = {"id": model, "architecture": {"input_modalities": senses}, "endpoints": [small, large]}
        self.pages[f"/api/v1/models/{model}/endpoints"] = {"data": about}
        self._offered.append({"id": model})
        self.pages["/api/v1/models"] = {"data": self._offered}


def refusal(code: int, message: str, **metadata: object) -> Json:
    error: Json = {"code": code, "message": message}
    return {"error": error | ({"metadata": metadata} if metadata else {})}


def frame(error: Json) -> bytes:
    """An error in the middle of a stream."""
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    return b"data: %b\n\n" % orjson.dumps({"id": "g", "choices": [choice], **error})
