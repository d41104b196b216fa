"""Servers that speak OpenAI's Chat Completions. They differ in data only."""

from agents.providers.base import Endpoint
from agents.providers.openai import OpenAIProvider


class CompatibleProvider(OpenAIProvider):
    """Any compatible server: most know the limit of output tokens by its older name only."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint, limit_field="max_tokens")
