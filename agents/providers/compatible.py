"""Servers that speak OpenAI's Chat Completions. They differ in data only."""

from agents.providers.base import Endpoint
from agents.providers.openai import IDLE_SECONDS, OpenAIProvider


class CompatibleProvider(OpenAIProvider):
    """Any compatible server: most know the limit of output tokens by its older name only."""

    def __init__(self, endpoint: Endpoint, *, idle_seconds: float = IDLE_SECONDS) -> None:
        super().__init__(endpoint, limit_field="max_tokens", idle_seconds=idle_seconds)


class OllamaProvider(CompatibleProvider):
    """Ollama is silent while it loads a model and reads a long prompt."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint, idle_seconds=600.0)


class OpenRouterProvider(CompatibleProvider):
    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
