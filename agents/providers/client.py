"""The costly part of a provider that speaks through OpenAI's SDK."""

import contextlib
import functools
from collections.abc import Mapping, Sequence

import httpx2
import openai

from agents.providers.base import Endpoint
from agents.providers.bounds import LONGEST_ERROR, LONGEST_LIST, read_at_most, read_whole
from agents.providers.wire import Line, http_client


class Client:
    """A connection and what goes with it, kept from run to run. The SDK says how a request looks, once; then each call
    differs in its body only.

    path: of the calls of a model, below the address or, with a slash before it, below the host.
    headers: that go with every request beside the SDK's.
    """

    def __init__(self, endpoint: Endpoint, path: str, headers: Mapping[str, str]) -> None:
        self.line = Line()
        self._http = http_client(self.line, endpoint.patience.idle, anywhere=endpoint.anywhere)
        self.sdk = openai.OpenAI(
            api_key=endpoint.api_key or "none", base_url=endpoint.base_url, max_retries=0, http_client=self._http
        )
        # The SDK takes these from the environment, which may not be meant for this server.
        self.sdk.organization = self.sdk.project = None
        self._base = self.sdk.base_url
        self._url = self._base.join(path)
        self._more = headers

    @functools.cached_property
    def _headers(self) -> httpx2.Headers:
        headers = {**self.sdk.default_headers, **self.sdk.auth_headers, **self._more, "Accept-Encoding": "identity"}
        return httpx2.Headers({name: value for name, value in headers.items() if isinstance(value, str)})

    def post(self, body: Sequence[bytes]) -> httpx2.Response:
        """Begin a call of the model. Raises: openai.APIStatusError, httpx2.HTTPError."""
        headers = self._headers.copy()
        headers["Content-Length"] = str(sum(map(len, body)))
        return self._send(httpx2.Request("POST", self._url, headers=headers, content=body))

    def page(self, path: str, body: bytes | None = None) -> bytes:
        """Return what the server says of itself at `path`, below the address or, when it begins with a slash, below
        the host; with a body it is posted. Raises: as `post`; ProviderError."""
        url = self._base.join(path)
        request = httpx2.Request("GET" if body is None else "POST", url, headers=self._headers, content=body)
        with contextlib.closing(self._send(request)) as response:
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
