"""The costly part of a provider that speaks through its vendor's SDK."""

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import httpx2

from agents.providers.base import Endpoint
from agents.providers.bounds import LONGEST_ERROR, LONGEST_LIST, read_at_most, read_whole
from agents.providers.wire import Line, http_client


class StatusError(Protocol):
    @property
    def body(self) -> object: ...


class Sdk(Protocol):
    """What is used of a vendor's SDK: the address, the headers, and how it reads an error."""

    @property
    def base_url(self) -> httpx2.URL: ...
    @property
    def default_headers(self) -> Mapping[str, object]: ...
    @property
    def auth_headers(self) -> Mapping[str, str]: ...
    def _make_status_error_from_response(self, response: httpx2.Response) -> StatusError: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a vendor is spoken to.

    sdk: makes its SDK for an endpoint, on an HTTP client.
    call, models: where a model is called, and where the models are listed (see `Client.page`).
    """

    sdk: Callable[[Endpoint, httpx2.Client], Sdk]
    call: str
    models: str


class Refused(Exception):
    """The server answered with an error. `body` is parsed JSON, or text when it was not JSON."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers


class Client:
    """A connection and what goes with it, kept from run to run. The SDK says how a request looks, once; then each call
    differs in its body only."""

    def __init__(self, endpoint: Endpoint, dialect: Dialect) -> None:
        self.line = Line()
        self._http = http_client(self.line, endpoint.patience.idle, anywhere=endpoint.anywhere)
        self.sdk = dialect.sdk(endpoint, self._http)
        self._base = self.sdk.base_url
        self._call = self._base.join(dialect.call)

    @functools.cached_property
    def _headers(self) -> httpx2.Headers:
        headers = {**self.sdk.default_headers, **self.sdk.auth_headers, "Accept-Encoding": "identity"}
        return httpx2.Headers(
            {name: value for name, value in headers.items() if isinstance(value, str)}, encoding="utf-8"
        )

    def post(self, body: Sequence[bytes]) -> httpx2.Response:
        """Begin a call of the model. Raises: Refused, httpx2.HTTPError."""
        headers = self._headers.copy()
        headers["Content-Length"] = str(sum(map(len, body)))
        return self._send(httpx2.Request("POST", self._call, headers=headers, content=body))

    def page(self, path: str, body: bytes | None = None) -> bytes:
        """Return what the server says of itself at `path`, below the SDK's address or a whole one; with a body it is
        posted. Raises: as `post`; ProviderError."""
        url, method = self._base.join(path), "GET" if body is None else "POST"
        request = httpx2.Request(method, url, headers=self._headers, content=body)
        with contextlib.closing(self._send(request)) as response:
            return read_whole(response, LONGEST_LIST)

    def _send(self, request: httpx2.Request) -> httpx2.Response:
        response = self._http.send(request, stream=True)
        if response.is_success:
            return response
        with contextlib.closing(response):
            body = read_at_most(response, LONGEST_ERROR)
        # Without the server's headers: it could name an encoding that is none, in which the SDK would read the body.
        whole = httpx2.Response(response.status_code, content=body, request=request)
        error = self.sdk._make_status_error_from_response(whole)
        raise Refused(response.status_code, error.body, response.headers)

    def close(self) -> None:
        self.sdk.close()
