"""What a server streams as parsed events, in any of the forms in which servers send them."""

from collections.abc import Iterator

import httpx2
from pydantic import JsonValue

from agents.providers import errors
from agents.providers.base import Trouble
from agents.providers.bounds import LONGEST_PIECE, read_whole, too_long
from agents.providers.codec import loads, loads_exactly
from agents.providers.sse import SSE, Splitter

type Payload = dict[str, JsonValue]


def events_of(response: httpx2.Response) -> Iterator[list[SSE]]:
    """Yield the events of each read, which may be none: a mere sign of life.

    A server that ignores `stream` answers with one JSON document, which counts as one event.
    """
    form = response.headers.get("content-type", "")
    if "ndjson" in form:
        yield from _lines(response)
        return
    if "json" in form:
        yield [SSE(read_whole(response, LONGEST_PIECE))]
        return
    splitter = Splitter()
    for read in response.iter_bytes():
        yield splitter.feed(read)
        if splitter.unfinished > LONGEST_PIECE:
            raise too_long()
    yield splitter.end()


def _lines(response: httpx2.Response) -> Iterator[list[SSE]]:
    """Yield what each read brought of one JSON object on each line."""
    rest = b""
    for read in response.iter_bytes():
        *lines, rest = (rest + read).split(b"\n")
        yield [SSE(line) for line in lines if line.strip()]
        if len(rest) > LONGEST_PIECE:
            raise too_long()
    yield [SSE(rest)] if rest.strip() else []


def payload_of(item: SSE) -> Payload | None:
    """Return the object that an event brings, None for anything else. An error comes as {"error": …}.

    Raises:
        ProviderError: not JSON.
    """
    try:
        # Some bring the arguments of a call as an object.
        payload = loads_exactly(item.data) if b"tool" in item.data else loads(item.data)
    except ValueError:
        if item.event != b"error":
            raise errors.failure(Trouble.BROKEN_STREAM, "a piece of the stream was not JSON") from None
        payload = item.data.decode(errors="replace")
    if item.event == b"error":
        return {"error": payload.get("error") or payload if isinstance(payload, dict) else payload}
    return payload if isinstance(payload, dict) else None
