"""The scripted model server as OpenRouter: what a call has cost, a choice among vendors, what is said of each model."""

from dataclasses import dataclass, replace
from typing import Any

import orjson

from tests.llm_script import DONE, Json, Reply, Request, Status, Step, event
from tests.llm_server import LLMServer

PREFERENCES = {"order", "allow_fallbacks", "require_parameters", "data_collection", "only", "ignore", "sort", "zdr"}


@dataclass
class Routed(Reply):
    """cost: in credits, as the number that stands in the JSON. upstream: with a key of one's own for the vendor."""

    cost: float = 0.0
    upstream: float | None = None
    written: int = 0

    def chunks(self, request: Request) -> list[bytes]:
        *chunks, _ = super().chunks(replace(request, body={}))
        prompt, completion, *cached = self.usage or (100, 10, 0)
        usage: Json = {"prompt_tokens": prompt, "completion_tokens": completion, "cost": self.cost}
        usage["prompt_tokens_details"] = {"cached_tokens": (cached or [0])[0], "cache_write_tokens": self.written}
        if self.upstream is not None:
            usage |= {"is_byok": True, "cost_details": {"upstream_inference_cost": self.upstream}}
        return [b": OPENROUTER PROCESSING\n\n", *chunks, event({"id": "g", "choices": [], "usage": usage}), DONE]


class OpenRouterServer(LLMServer):
    """Counts always; a field that it does not know is a violation."""

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
        listed: Any = self.pages.setdefault("/api/v1/models", {"data": []})
        listed["data"].append({"id": model})

    def step_for(self, request: Request) -> Step:
        unknown = set(request.body.get("provider") or {}) - PREFERENCES
        if unknown or request.body.get("provider") == {}:
            self.violations.append(f"unknown preferences {sorted(unknown)}")
            return Status(400, body=refusal(400, "invalid preferences"))
        step = super().step_for(request)
        return Routed(**vars(step)) if type(step) is Reply else step


def refusal(code: int, message: str, **metadata: object) -> Json:
    error: Json = {"code": code, "message": message}
    return {"error": error | ({"metadata": metadata} if metadata else {})}


def frame(error: Json) -> bytes:
    """An error in the middle of a stream."""
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error"}
    return b"data: %b\n\n" % orjson.dumps({"id": "g", "choices": [choice], **error})
