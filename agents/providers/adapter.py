"""What adapters have in common that stream over HTTP: one call from its beginning to its end, whatever is said in it.

The vendor's SDK brings authorisation and reads errors. Its building of requests and its typed stream are left out,
because they would cost more than the rest of a run (docs/performance).
"""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Iterator, Sequence
from typing import ClassVar, Protocol

import httpx2

from agents.providers import errors
from agents.providers.base import NOTHING_USED, Chunk, Endpoint, ModelRequest, ProviderError, Trouble, Usage
from agents.providers.client import Client, Dialect, Refused
from agents.providers.codec import loads
from agents.providers.events import Payload, events_of, payload_of
from agents.providers.pool import FreeList
from agents.providers.sse import SSE
from tools.cancel import CancelToken

DRAIN_SECONDS = 0.2
COUNT_SECONDS = 30.0
_FAILURES = (Refused, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)

_idle: FreeList[Endpoint, Client] = FreeList(256)


class Answer(Protocol):
    """What has come of a reply. It is fed parsed events, and `finish_reason` is None until the server said why it
    stopped.

    received: how much has come, of whatever kind. is_full: there is no room for more. is_over: nothing more comes.
    """

    finish_reason: str | None
    received: int
    is_over: bool

    @property
    def usage(self) -> Usage: ...
    @property
    def is_full(self) -> bool: ...
    def feed(self, payload: Payload) -> None: ...
    def over(self) -> None: ...
    def deltas(self) -> Iterator[Chunk]: ...
    def end(self, taken: Collection[str]) -> Iterator[Chunk]: ...


class StreamingProvider(ABC):
    """Implements `Provider`, but for what a vendor is sent and how its answers are read.

    Args:
        endpoint: with its address.
    """

    dialect: ClassVar[Dialect]

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._client = _idle.take(endpoint) or Client(endpoint, self.dialect)
        self._busy = False

    @abstractmethod
    def _open(self, request: ModelRequest) -> httpx2.Response:
        """Start the call, by `_post`. Raises: as `Client.post`; ProviderError."""

    @abstractmethod
    def _answer(self) -> Answer: ...

    @property
    @abstractmethod
    def _ids(self) -> Collection[str]:
        """Of all tool calls in the messages of the last request."""

    def stream(self, request: ModelRequest, cancel: CancelToken) -> Iterator[Chunk]:
        cancel.check()
        self._begin()
        with cancel.on_cancel(self._client.line.cut):
            try:
                with contextlib.closing(self._open(request)) as response:
                    answer = yield from self._read(response, cancel)
            except _FAILURES as error:
                cancel.check()
                # Without its cause, which holds the request and with it the key.
                raise self._failure(error) from None
        self._free(cancel)  # Before the Reply, after which nobody asks for more.
        yield from answer.end(self._ids)

    def models(self, cancel: CancelToken) -> list[str]:
        """Return the names of the models the server offers, sorted. Raises: ProviderError, Cancelled."""
        return sorted(name for model in self._listed(cancel) if isinstance(name := model.get("id"), str))

    def _listed(self, cancel: CancelToken) -> list[Payload]:
        """What the server says of its models. Raises: as `_page`."""
        data = self._page(self.dialect.models, cancel).get("data")
        return [model for model in data if isinstance(model, dict)] if isinstance(data, list) else []

    def _page(self, path: str, cancel: CancelToken, body: bytes | None = None) -> Payload:
        """Return the object that the server answers with at `path` (see `Client.page`).

        Raises:
            ProviderError: it answered with something else, or not at all.
            Cancelled: the token was set.
        """
        self._begin()
        try:
            with cancel.on_cancel(self._client.line.cut):
                answer = loads(self._client.page(path, body))
        except ValueError:
            raise errors.failure(
                Trouble.REFUSED_REQUEST, "what it answered is not a list of models, or not what one can"
            ) from None
        except _FAILURES as error:
            cancel.check()
            raise self._failure(error) from None
        self._free(cancel)
        return answer if isinstance(answer, dict) else {}

    def close(self) -> None:
        """Give the client back for the next run; one that was left in mid-stream is closed."""
        if self._busy:
            self._client.close()
        else:
            _idle.give(self._endpoint, self._client)

    def _failure(self, error: Exception) -> ProviderError:
        """Return our error for what the client raised."""
        if isinstance(error, Refused):
            error.body = self._plain(error.body)
        return translated(error, self._endpoint.api_key)

    def _plain(self, error: object) -> object:
        """What the server says of a failure, in the form that everybody else uses."""
        return error

    def _begin(self) -> None:
        key = self._endpoint.api_key
        if not (key.isascii() and (key.isprintable() or not key)):
            raise errors.failure(Trouble.BAD_KEY, "it holds characters that no key has", usage=NOTHING_USED)
        self._client.line.ready()
        self._busy = True

    def _free(self, cancel: CancelToken) -> None:
        """The call is over. Whoever sets the token at this moment may still be about to cut the line."""
        self._busy = cancel.is_set()

    def _post(self, body: Sequence[bytes]) -> httpx2.Response:
        response = self._client.post(body)
        if response.headers.get("content-type", "").startswith("text/html"):
            response.close()
            raise errors.failure(Trouble.REFUSED_REQUEST, "it answered with a web page; check the address")
        return response

    def _read(self, response: httpx2.Response, cancel: CancelToken) -> Generator[Chunk, None, Answer]:
        """Yield the pieces of an answer, return it when it is whole."""
        answer = self._answer()
        try:
            yield from self._deltas(response, answer, cancel)
        except httpx2.TransportError as error:
            cancel.check()
            if answer.finish_reason is None:
                trouble = Trouble.TIMEOUT if isinstance(error, httpx2.TimeoutException) else Trouble.BROKEN_STREAM
                raise errors.failure(trouble, "the connection was lost", usage=answer.usage) from None
        cancel.check()
        if answer.finish_reason is None:
            raise errors.failure(Trouble.BROKEN_STREAM, "the stream ended early", usage=answer.usage)
        return answer

    def _deltas(self, response: httpx2.Response, answer: Answer, cancel: CancelToken) -> Iterator[Chunk]:
        """Yield what each read brought, in one piece."""
        before, since = (0, answer.finish_reason, False), time.monotonic()
        for events in events_of(response):
            cancel.check()
            for event in events:
                self._take(event, answer)
            yield from answer.deltas()
            if answer.is_full:
                return
            if (now := (answer.received, answer.finish_reason, answer.is_over)) != before:
                before, since = now, time.monotonic()
            elif time.monotonic() - since > self._longest_silence(answer):
                if answer.finish_reason is not None:
                    return
                raise errors.failure(Trouble.TIMEOUT, "it gave signs of life but no answer", usage=answer.usage)

    def _longest_silence(self, answer: Answer) -> float:
        """Seconds of mere signs of life. After its last word an answer is whole, and only the count may still come."""
        silent = self._endpoint.patience.silent
        if answer.finish_reason is None:
            return silent
        return DRAIN_SECONDS if answer.is_over else min(COUNT_SECONDS, silent)

    def _take(self, event: SSE, answer: Answer) -> None:
        if event.data.startswith(b"[DONE]"):
            answer.over()
        elif (payload := payload_of(event)) is not None:
            if error := payload.get("error") or (payload if payload.get("object") == "error" else None):
                raise errors.from_frame(self._plain(error), self._endpoint.api_key, answer.usage)
            answer.feed(payload)
        if answer.is_over:
            # What follows is only the end of the body, which keeps the connection usable when it comes at once.
            self._client.line.limit(DRAIN_SECONDS)


def translated(error: Exception, key: str) -> ProviderError:
    """Return our error for what a client raises. Before there is a connection nothing was used; after, nobody knows."""
    match error:
        case Refused():
            return errors.from_status(error.status, error.body, error.headers, key)
        case httpx2.ConnectTimeout() | httpx2.ConnectError():
            return errors.failure(Trouble.UNREACHABLE, str(error), key=key, usage=NOTHING_USED)
        case httpx2.LocalProtocolError():
            return errors.failure(Trouble.UNREACHABLE, str(error), retryable=False, usage=NOTHING_USED)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            words = "the address is not valid"
            return errors.failure(Trouble.UNREACHABLE, words, retryable=False, usage=NOTHING_USED)
        case httpx2.TimeoutException():
            return errors.failure(Trouble.TIMEOUT)
        case httpx2.TransportError():
            return errors.failure(Trouble.UNREACHABLE, "the connection was lost")
        case _:
            return errors.failure(Trouble.REFUSED_REQUEST, str(error), key=key)
