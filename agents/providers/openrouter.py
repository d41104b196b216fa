"""OpenRouter: Chat Completions, with a choice among vendors, what a call has cost, and reasons inside its errors."""

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from urllib.parse import quote

import httpx2
import openai
from pydantic import JsonValue

from agents.providers.base import Endpoint, ModelRequest, Routing, Usage
from agents.providers.capabilities import Capabilities, positive
from agents.providers.chat_body import ChatBody
from agents.providers.chat_reply import ChatReply, count
from agents.providers.events import Payload
from agents.providers.openai import OpenAIProvider, sdk_of
from agents.providers.pricing import amount
from memory.text import clip
from tools.cancel import CancelToken

# Characters of what the vendor behind it has said.
RAW_SHOWN = 300


class OpenRouterBody(ChatBody):
    def __init__(self, routing: Routing) -> None:
        super().__init__("max_tokens")
        self._provider = preferences(routing)

    def _head(self, request: ModelRequest, with_usage: bool) -> dict[str, JsonValue]:
        head = super()._head(request, with_usage=False)  # counts come always
        return head | ({"provider": self._provider} if self._provider else {})


class OpenRouterReply(ChatReply):
    def _usage(self, usage: Payload, model: str) -> Usage:
        counted = super()._usage(usage, model)
        details = usage.get("prompt_tokens_details")
        written = count(details.get("cache_write_tokens")) if isinstance(details, dict) else None
        return replace(counted, written_tokens=written, cost=_charged(usage))


def _sdk(endpoint: Endpoint, http: httpx2.Client) -> openai.OpenAI:
    return sdk_of(endpoint, http, attribution(endpoint.routing))


class OpenRouterProvider(OpenAIProvider):
    dialect = replace(OpenAIProvider.dialect, sdk=_sdk)

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint, body=OpenRouterBody(endpoint.routing))

    def facts(self, model: str, cancel: CancelToken) -> Capabilities:
        """What is said of a model and of those who serve it: what one of them can, and the most that one takes."""
        data = self._page(f"models/{quote(model, safe='/:')}/endpoints", cancel).get("data")
        if not isinstance(data, dict):
            return Capabilities()
        listed = data.get("endpoints")
        served = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
        can = {str(name) for each in served for name in _texts(each.get("supported_parameters"))}
        about = data.get("architecture")
        takes = _texts(about.get("input_modalities")) if isinstance(about, dict) else []
        return Capabilities(
            tools="tools" in can if can else None,
            parallel_calls=True if "parallel_tool_calls" in can else None,
            images="image" in takes if takes else None,
            thinking="reasoning" in can if can else None,
            context_length=_most(served, "context_length"),
            output_limit=_most(served, "max_completion_tokens"),
        )

    def _answer(self) -> OpenRouterReply:
        return OpenRouterReply(self._endpoint.answer_length)

    def _plain(self, error: object) -> object:
        """Put the reasons from `metadata` into the sentence: of moderation, and of the vendor that failed."""
        inner = error.get("error") if isinstance(error, dict) and isinstance(error.get("error"), dict) else error
        if not isinstance(inner, dict) or not isinstance(inner.get("metadata"), dict):
            return error
        reasons = "; ".join(filter(None, _reasons(inner["metadata"])))
        return {**inner, "message": f"{inner.get('message') or 'no reason given'} ({reasons})"} if reasons else inner


def preferences(routing: Routing) -> dict[str, JsonValue]:
    """The field `provider` of a call; empty when all is left to the router."""
    wanted: dict[str, JsonValue] = {}
    if routing.order:
        wanted["order"] = list(routing.order)
        if routing.only_these:
            wanted["allow_fallbacks"] = False
    if routing.require_parameters:
        wanted["require_parameters"] = True
    if routing.deny_training:
        wanted["data_collection"] = "deny"
    return wanted


def attribution(routing: Routing) -> Mapping[str, str]:
    named = {"X-Title": routing.title, "HTTP-Referer": routing.referer}
    return {name: value for name, value in named.items() if value}


def _charged(usage: Payload) -> Decimal | None:
    """Credits are US dollars. With a key of the user's own for the vendor, that vendor's bill comes on top."""
    cost = _amount(usage.get("cost"))
    details = usage.get("cost_details")
    if cost is None or usage.get("is_byok") is not True:
        return cost
    return cost + ((_amount(details.get("upstream_inference_cost")) if isinstance(details, dict) else None) or 0)


def _amount(value: JsonValue) -> Decimal | None:
    """By way of the text, in which a binary fraction is the number that was written."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return amount(Decimal(str(value)))
    except (InvalidOperation, ValueError):
        return None


def _reasons(metadata: Mapping[str, object]) -> list[str]:
    vendor, raw, flagged = metadata.get("provider_name"), metadata.get("raw"), metadata.get("reasons")
    said = raw if isinstance(raw, str) and not raw.lstrip().startswith("<") else ""
    listed = ", ".join(map(str, flagged)) if isinstance(flagged, list) else ""
    return [
        f"flagged for {listed}" if listed else "",
        f"{vendor} says: {clip(said, RAW_SHOWN)}" if said and vendor else clip(said, RAW_SHOWN) or str(vendor or ""),
    ]


def _texts(value: JsonValue) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _most(served: list[Payload], name: str) -> int | None:
    return max((number for each in served if (number := positive(each.get(name)))), default=None)
