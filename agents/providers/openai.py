"""OpenAI's Chat Completions, and every server that speaks them.

Importing this module imports the SDK (27 MB), so only `catalog.connect` does.
"""

from collections.abc import Collection, Mapping

import httpx2
import openai

from agents.providers.adapter import StreamingProvider
from agents.providers.base import Endpoint, ModelRequest
from agents.providers.chat_body import ChatBody
from agents.providers.chat_reply import ChatReply
from agents.providers.client import Dialect, Refused

_refuse_usage: set[str] = set()


def sdk_of(endpoint: Endpoint, http: httpx2.Client, headers: Mapping[str, str] | None = None) -> openai.OpenAI:
    """The SDK for an endpoint. headers: that go with every request beside its own."""
    sdk = openai.OpenAI(
        api_key=endpoint.api_key or "none",
        base_url=endpoint.base_url,
        max_retries=0,
        http_client=http,
        default_headers=headers,
    )
    # The SDK takes these from the environment, which may not be meant for this server.
    sdk.organization = sdk.project = None
    return sdk


class OpenAIProvider(StreamingProvider):
    """Implements `Provider`.

    Args:
        endpoint: with its address; the API of OpenAI itself or of a compatible server.
        limit_field: the server's name for the limit of output tokens.
        body: how calls are written, when the server wants more than that.
    """

    dialect = Dialect(sdk_of, "chat/completions", "models")

    def __init__(
        self, endpoint: Endpoint, *, limit_field: str = "max_completion_tokens", body: ChatBody | None = None
    ) -> None:
        super().__init__(endpoint)
        self._body = body or ChatBody(limit_field)

    def _open(self, request: ModelRequest) -> httpx2.Response:
        """A server that refuses to count tokens is asked once more without, and for good when it takes that (case
        PRV-05): many repeat the whole request, whatever they refuse in it."""
        address = self._endpoint.base_url
        if address not in _refuse_usage:
            try:
                return self._post(self._body.serialise(request, with_usage=True))
            except Refused as refused:
                if not _is_about_usage(refused):
                    raise
        response = self._post(self._body.serialise(request, with_usage=False))
        _refuse_usage.add(address)
        return response

    def _answer(self) -> ChatReply:
        return ChatReply(self._endpoint.answer_length)

    @property
    def _ids(self) -> Collection[str]:
        return self._body.ids


def _is_about_usage(refused: Refused) -> bool:
    words = str(refused.body)
    return refused.status in (400, 422) and ("stream_options" in words or "include_usage" in words)
