"""OpenAI's Chat Completions, and every server that speaks them.

The official SDK brings authorisation and errors. Its building of requests and its typed stream are left out, because
they would cost more than the rest of a run (docs/performance). Importing this module imports the SDK (27 MB), so only
`catalog.connect` does.
"""

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import httpx2
import openai

from agents.providers import errors
from agents.providers.base import Chunk, Endpoint, ModelRequest, ProviderError, Trouble
from agents.providers.bounds import LONGEST_PIECE, read_whole, too_long
from agents.providers.chat_body import ChatBody
from agents.providers.chat_reply import ChatReply, Payload
from agents.providers.client import Client
from agents.providers.codec import loads
from agents.providers.pool import FreeList
from agents.providers.sse import SSE, Splitter
from tools.cancel import CancelToken

DRAIN_SECONDS = 0.2
_FAILURES = (openai.OpenAIError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL)


_idle: FreeList[Endpoint, Client] = FreeList(256)
_refuse_usage: set[str] = set()


class OpenAIProvider:
    """Implements `Provider`.

    Args:
        endpoint: with its address; the API of OpenAI itself or of a compatible server.
        limit_field: the server's name for the limit of output tokens.
        body: how calls are written, when the server wants more than that.
    """

    path = "chat/completions"
    headers: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self, endpoint: Endpoint, *, limit_field: str = "max_completion_tokens", body: ChatBody | None = None
    ) -> None:
        self._endpoint = endpoint
        self._body = body or ChatBody(limit_field)
        self._client = _idle.take(endpoint) or Client(endpoint, self.path, self.headers)
        self._busy = False

    def stream(self, request: ModelRequest, cancel: CancelToken) -> Iterator[Chunk]:
        cancel.check()
        self._begin()
        with cancel.on_cancel(self._client.line.cut):
            try:
                with contextlib.closing(self._open(request)) as response:
                    yield from self._read(response, cancel)
            except _FAILURES as error:
                cancel.check()
                # Without its cause: the SDK's errors hold the request and with it the key.
                raise self._translated(error) from None
        self._busy = False

    def models(self, cancel: CancelToken) -> list[str]:
        """Return the names of the models the server offers, sorted. Raises: ProviderError, Cancelled."""
        return sorted(name for model in self._listed(cancel) if isinstance(name := model.get("id"), str))

    def _listed(self, cancel: CancelToken) -> list[Payload]:
        """What the server says of its models. Raises: as `_page`."""
        data = self._page("models", cancel).get("data")
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
            raise self._translated(error) from None
        self._busy = False
        return answer if isinstance(answer, dict) else {}

    def close(self) -> None:
        """Give the client back for the next run; one that was left in mid-stream is closed."""
        if self._busy:
            self._client.close()
        else:
            _idle.give(self._endpoint, self._client)

    def _begin(self) -> None:
        key = self._endpoint.api_key
        if not (key.isascii() and (key.isprintable() or not key)):
            raise errors.failure(Trouble.BAD_KEY, "it holds characters that no key has")
        self._client.line.ready()
        self._busy = True

    def _open(self, request: ModelRequest) -> httpx2.Response:
        """Start the call. A server that refuses to count tokens is asked once more without, for good (case PRV-05)."""
        address = self._endpoint.base_url
        if address not in _refuse_usage:
            try:
                return self._post(self._body.serialise(request, with_usage=True))
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if not _is_about_usage(error):
                    raise
                _refuse_usage.add(address)
        return self._post(self._body.serialise(request, with_usage=False))

    def _post(self, body: Sequence[bytes]) -> httpx2.Response:
        response = self._client.post(body)
        if response.headers.get("content-type", "").startswith("text/html"):
            response.close()
            raise errors.failure(Trouble.REFUSED_REQUEST, "it answered with a web page; check the address")
        return response

    def _read(self, response: httpx2.Response, cancel: CancelToken) -> Iterator[Chunk]:
        reply = self._new_reply()
        try:
            yield from self._deltas(response, reply, cancel)
        except httpx2.TransportError as error:
            cancel.check()
            if reply.finish_reason is None:
                trouble = Trouble.TIMEOUT if isinstance(error, httpx2.TimeoutException) else Trouble.BROKEN_STREAM
                raise errors.failure(trouble, "the connection was lost", usage=reply.usage) from None
        cancel.check()
        if reply.finish_reason is None:
            raise errors.failure(Trouble.BROKEN_STREAM, "the stream ended early", usage=reply.usage)
        yield from reply.end(self._body.ids)

    def _deltas(self, response: httpx2.Response, reply: ChatReply, cancel: CancelToken) -> Iterator[Chunk]:
        """Yield what each read brought, in one piece."""
        received, since = 0, time.monotonic()
        for events in self._events(response):
            cancel.check()
            for event in events:
                self._take(event, reply)
            yield from reply.deltas()
            if reply.is_full:
                return
            if reply.received > received:
                received, since = reply.received, time.monotonic()
            elif time.monotonic() - since > self._endpoint.patience.silent:
                raise errors.failure(Trouble.TIMEOUT, "it gave signs of life but no answer", usage=reply.usage)

    def _take(self, event: SSE, reply: ChatReply) -> None:
        if event.data.startswith(b"[DONE]"):
            reply.finish_reason = reply.finish_reason or "stop"
            # What follows is only the end of the body, which keeps the connection usable when it comes at once.
            self._client.line.limit(DRAIN_SECONDS)
        elif (payload := _parsed(event)) is not None:
            self._refuse_error(payload, reply)
            reply.feed(payload)

    def _refuse_error(self, payload: Payload, reply: ChatReply) -> None:
        error = payload.get("error") or (payload if payload.get("object") == "error" else None)
        if error:
            raise errors.from_frame(self._plain(error), self._endpoint.api_key, reply.usage)

    def _new_reply(self) -> ChatReply:
        return ChatReply(self._endpoint.answer_length)

    def _events(self, response: httpx2.Response) -> Iterator[list[SSE]]:
        """Yield the events of each read, which may be none: a mere sign of life."""
        return _events(response)

    def _plain(self, error: object) -> object:
        """What the server says of a failure, in the form that everybody else uses."""
        return error

    def _translated(self, error: Exception) -> ProviderError:
        if isinstance(error, openai.APIStatusError):
            error.body = self._plain(error.body)
        return translated(error, self._endpoint.api_key)


def _events(response: httpx2.Response) -> Iterator[list[SSE]]:
    """A server that ignores `stream` answers with one JSON document, which counts as one event."""
    if "json" in response.headers.get("content-type", ""):
        yield [SSE(read_whole(response, LONGEST_PIECE))]
        return
    splitter = Splitter()
    for read in response.iter_bytes():
        yield splitter.feed(read)
        if splitter.unfinished > LONGEST_PIECE:
            raise too_long()
    yield splitter.end()


def _parsed(item: SSE) -> Payload | None:
    try:
        payload = loads(item.data)
    except ValueError:
        if item.event != b"error":
            raise errors.failure(Trouble.BROKEN_STREAM, "a piece of the stream was not JSON") from None
        payload = item.data.decode(errors="replace")
    if item.event == b"error":
        return {"error": payload.get("error") or payload if isinstance(payload, dict) else payload}
    return payload if isinstance(payload, dict) else None


def _is_about_usage(error: openai.APIStatusError) -> bool:
    words = str(error.body) + error.message
    return "stream_options" in words or "include_usage" in words


def translated(error: Exception, key: str) -> ProviderError:
    """Return our error for one of the SDK's or of its transport's."""
    if isinstance(error, openai.APIStatusError):
        return errors.from_status(error.status_code, error.body, error.response.headers, key)
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    match cause:
        case httpx2.ConnectTimeout() | httpx2.ConnectError():
            return errors.failure(Trouble.UNREACHABLE, str(cause), key=key)
        case httpx2.TimeoutException():
            return errors.failure(Trouble.TIMEOUT)
        case httpx2.LocalProtocolError():
            return errors.failure(Trouble.UNREACHABLE, str(cause), retryable=False)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return errors.failure(Trouble.UNREACHABLE, "the address is not valid", retryable=False)
        case httpx2.TransportError():
            return errors.failure(Trouble.UNREACHABLE, "the connection was lost")
        case _:
            return errors.failure(Trouble.REFUSED_REQUEST, str(error), key=key)
