"""OpenAI's Chat Completions, and every server that speaks them.

Importing this module imports the SDK (27 MB), so only `catalog.connect` does.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import httpx2
import openai

from agents.providers.adapter import StreamingProvider
from agents.providers.base import Endpoint, ModelRequest
from agents.providers.chat_body import ChatBody
from agents.providers.chat_messages import Back
from agents.providers.chat_reply import ChatReply
from agents.providers.client import Dialect, Refused

# What servers say of a field that they do not know.
_UNKNOWN = re.compile(
    r"unsupported|not supported|not permitted|not allowed|unexpected|unknown|unrecognized|extra", re.I
)
_SEAL = re.compile(r"thought.?signature", re.I)


@dataclass(frozen=True, slots=True)
class Manner:
    """How a server wants a model to be called.

    counts: it can be asked to count tokens. back: the thoughts that it gets back.
    """

    counts: bool = True
    back: Back = Back.OWN

    def after(self, refused: Refused) -> "Manner":
        """Return the manner that it may have meant with its refusal, which may be this one."""
        words = str(refused.body)
        if refused.status not in (400, 422):
            return self
        if self.counts and ("stream_options" in words or "include_usage" in words):
            return replace(self, counts=False)
        if self.back is not Back.OWN:
            return self
        if "reasoning_content" in words:
            return replace(self, back=Back.NONE if _UNKNOWN.search(words) else Back.THOUGHTS)
        return replace(self, back=Back.SEALS) if _SEAL.search(words) else self


_manners: dict[tuple[str, str], Manner] = {}


def sdk_of(endpoint: Endpoint, http: httpx2.Client, headers: Mapping[str, str] | None = None) -> openai.OpenAI:
    """The SDK for an endpoint. headers: that go with every request beside its own."""
    sdk = openai.OpenAI(
        api_key=endpoint.api_key or "none",
        base_url=endpoint.base_url,
        max_retries=0,
        http_client=http,
    )
    # The SDK takes these from the environment, which may not be meant for this server.
    sdk.organization = sdk.project = None
    sdk._custom_headers = dict(headers or {})
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
        self._maker = urlsplit(endpoint.base_url).netloc
        self._body = body or ChatBody(limit_field, self._maker)

    def _open(self, request: ModelRequest) -> httpx2.Response:
        """A server that refuses a field of the call, or wants one, is asked once more in its manner, and from then on
        when it takes that (cases PRV-05, PRV-08): many repeat the whole request, whatever they refuse in it."""
        place = self._endpoint.base_url, request.model
        manner = _manners.get(place, Manner())
        body = self._written(request, manner)
        while True:
            try:
                response = self._post(body)
            except Refused as refused:
                other, before = manner.after(refused), body
                if other == manner:
                    raise
                manner, body = other, self._written(request, other)
                if b"".join(body) == b"".join(before):
                    raise
            else:
                if manner != Manner():
                    _manners[place] = manner
                return response

    def _written(self, request: ModelRequest, manner: Manner) -> list[bytes]:
        return self._body.serialise(request, with_usage=manner.counts, back=manner.back)

    def _answer(self) -> ChatReply:
        return ChatReply(self._endpoint.answer_length, self._maker)

    @property
    def _ids(self) -> Collection[str]:
        return self._body.ids
