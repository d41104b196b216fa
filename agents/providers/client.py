"""The costly part of a provider that speaks through OpenAI's SDK."""

import contextlib
import functools
from collections.abc import Sequence

import httpx2
import openai

from agents.providers.base import Endpoint
from agents.providers.bounds import LONGEST_ERROR, LONGEST_LIST, read_at_most, read_whole
from agents.providers.wire import Line, http_client


class Client:
    """A connection and what goes with it, kept from run to run. The SDK says how a request looks, once; then each call
    differs in its body only."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.line = Line()
        self._http = http_client(self.line, endpoint.patience.idle, anywhere=endpoint.anywhere)
        self.sdk = openai.OpenAI(
            api_key=endpoint.api_key or "none", base_url=endpoint.base_url, max_retries=0, http_client=self._http
        )
        # The SDK takes these from the environment, which may not be meant for this server.
        self.sdk.organization = self.sdk.project = None
        self._base = self.sdk.base_url
        self._url = self._base.copy_with(raw_path=self._base.raw_path + b"chat/completions")

    @functools.cached_property
    def _headers(self) -> httpx2.Headers:
        headers = {**self.sdk.default_headers, **self.sdk.auth_headers, "Accept-Encoding": "identity"}
        return httpx2.Headers({name: value for name, value in headers.items() if isinstance(value, str)})

    def post(self, body: Sequence[bytes]) -> httpx2.Response:
        """Begin a call of the model. Raises: openai.APIStatusError, httpx2.HTTPError."""
        headers = self._headers.copy()
        headers["Content-Length"] = str(sum(map(len, body)))
        return self._send(httpx2.Request("POST", self._url, headers=headers, content=body))

    def list_models(self) -> bytes:
        """Return the answer to the question which models there are. Raises: as `post`; ProviderError."""
        url = self._base.copy_with(raw_path=self._base.raw_path + b"models")
        with contextlib.closing(self._send(httpx2.Request("GET", url, headers=self._headers))) as response:
            return read_whole(response, LONGEST_LIST)

    def _send(self, request: httpx2.Request) -> httpx2.Response:
        response = self._http.send(request, stream=True)
        if response.is_success:
            return response
        with contextlib.closing(response):
            body = read_at_most(response, LONGEST_ERROR)
        raise self.sdk._make_status_error_from_response(
            httpx2.Response(response.status_code, headers=response.headers, content=body, request=request)
        )

    def close(self) -> None:
        self.sdk.close()
