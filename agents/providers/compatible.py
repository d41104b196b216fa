"""Servers that speak OpenAI's Chat Completions. They differ in data only, and in where they tell what they can."""

import contextlib
from urllib.parse import quote

from agents.providers.base import Endpoint, ProviderError
from agents.providers.capabilities import Capabilities, positive
from agents.providers.events import Payload
from agents.providers.openai import OpenAIProvider
from tools.cancel import CancelToken

# How servers name the length of the context in their lists: vLLM, Groq and gateways, Mistral, routers.
WINDOWS = ("max_model_len", "context_window", "max_context_length", "context_length")
LIMITS = ("max_completion_tokens", "max_output_tokens")


class CompatibleProvider(OpenAIProvider):
    """Any compatible server: most know the limit of output tokens by its older name only."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint, limit_field="max_tokens")

    def facts(self, model: str, cancel: CancelToken) -> Capabilities:
        """What the list of models says; where it says nothing of the context, what llama.cpp and LM Studio say in
        places of their own. Raises: ProviderError, Cancelled."""
        entry = next((each for each in self._listed(cancel) if each.get("id") == model), {})
        listed = _listed(entry)
        if listed.context_length:
            return listed
        # Beside the /v1 of their address, which may stand below a path.
        root = self._endpoint.base_url.removesuffix("/v1")
        props, studio = (self._told(f"{root}/{place}", cancel) for place in ("props", f"api/v0/models/{quote(model)}"))
        return listed.over(_props(props)).over(_studio(studio))

    def _told(self, path: str, cancel: CancelToken) -> Payload:
        """What stands in a place that most servers do not have."""
        with contextlib.suppress(ProviderError):
            return self._page(path, cancel)
        return {}


def _listed(entry: Payload) -> Capabilities:
    can = entry.get("capabilities")
    known = can if isinstance(can, dict) else {}
    tools, images = known.get("function_calling"), known.get("vision")
    return Capabilities(
        tools=tools if isinstance(tools, bool) else None,
        images=images if isinstance(images, bool) else None,
        context_length=_first(entry, WINDOWS),
        output_limit=_first(entry, LIMITS),
    )


def _props(props: Payload) -> Capabilities:
    """llama.cpp: the context of one slot, and what the model's template provides for."""
    settings, template, senses = (
        found if isinstance(found := props.get(name), dict) else {}
        for name in ("default_generation_settings", "chat_template_caps", "modalities")
    )
    tools, parallel, images = (
        template.get("supports_tools"),
        template.get("supports_parallel_tool_calls"),
        senses.get("vision"),
    )
    return Capabilities(
        tools=tools if isinstance(tools, bool) else None,
        parallel_calls=parallel if isinstance(parallel, bool) else None,
        images=images if isinstance(images, bool) else None,
        context_length=positive(settings.get("n_ctx")),
    )


def _studio(model: Payload) -> Capabilities:
    """LM Studio: the context that the model was loaded with, else the longest that it can be loaded with."""
    can = model.get("capabilities")
    return Capabilities(
        tools="tool_use" in can if isinstance(can, list) else None,
        images=model.get("type") == "vlm" if "type" in model else None,
        context_length=_first(model, ("loaded_context_length", "max_context_length")),
    )


def _first(entry: Payload, names: tuple[str, ...]) -> int | None:
    return next((number for name in names if (number := positive(entry.get(name)))), None)
