"""Anthropic's Messages, and servers that speak them.

Importing this module imports the SDK, so only `catalog.connect` does.
"""

import contextlib
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import urlsplit

import anthropic
import httpx2

from agents.providers.adapter import StreamingProvider
from agents.providers.anthropic_body import MessagesBody
from agents.providers.anthropic_reply import MessagesReply
from agents.providers.base import Endpoint, ModelRequest, ProviderError, Trouble
from agents.providers.client import Dialect, Refused

_LIMITS = tuple(f"anthropic-ratelimit-{each}" for each in ("requests", "tokens", "input-tokens", "output-tokens"))


def _sdk(endpoint: Endpoint, http: httpx2.Client) -> anthropic.Anthropic:
    sdk = anthropic.Anthropic(
        api_key=endpoint.api_key or "none", base_url=endpoint.base_url, max_retries=0, http_client=http
    )
    # The SDK takes these from the environment, which may not be meant for this server.
    sdk._custom_headers = {}
    return sdk


class AnthropicProvider(StreamingProvider):
    """Implements `Provider`. The address may end with /v1, which the SDK puts before its paths itself."""

    dialect = Dialect(_sdk, "v1/messages", "v1/models?limit=1000")

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(replace(endpoint, base_url=endpoint.base_url.removesuffix("/v1")))
        self._maker = urlsplit(self._endpoint.base_url).netloc
        self._body = MessagesBody(self._maker)

    def _open(self, request: ModelRequest) -> httpx2.Response:
        """Thoughts that the server takes for changed are left out for good. Newer models bind each to everything before
        it, so that a session that was cut, or a tool that came meanwhile, is enough for a refusal."""
        try:
            return self._post(self._body.serialise(request))
        except Refused as refused:
            if not (_is_about_thoughts(refused) and self._body.withhold(request.messages)):
                raise
        return self._post(self._body.serialise(request))

    def _failure(self, error: Exception) -> ProviderError:
        found = super()._failure(error)
        if found.trouble is Trouble.RATE_LIMITED and found.retry_after is None and isinstance(error, Refused):
            found.retry_after = _until_reset(error.headers)
        return found

    def _answer(self) -> MessagesReply:
        return MessagesReply(self._endpoint.answer_length, self._maker)

    @property
    def _ids(self) -> Collection[str]:
        return self._body.ids


def _until_reset(headers: Mapping[str, str]) -> float | None:
    """Seconds until the last of the limits that are used up is renewed; None when the answer does not say."""
    used_up = (headers.get(f"{name}-reset", "") for name in _LIMITS if headers.get(f"{name}-remaining") == "0")
    waits = []
    for moment in used_up:
        with contextlib.suppress(ValueError, TypeError):
            waits.append((datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds())
    longest = max(waits, default=0)
    return longest if longest > 0 else None


def _is_about_thoughts(refused: Refused) -> bool:
    words = str(refused.body)
    return refused.status in (400, 422) and "thinking" in words and ("signature" in words or "modified" in words)
