"""Questions to a provider before it is used: does it answer, which models has it, is Ollama here?"""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.client import HTTPConnection, HTTPException
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

from agents.providers import errors
from agents.providers.base import Endpoint, ModelRequest, Provider, ProviderError, Reply, Trouble, Verdict
from agents.providers.capabilities import Capabilities
from agents.providers.catalog import connect, kind_of
from memory.messages import user
from tools.base import ToolSpec
from tools.cancel import Cancelled, CancelToken

PATIENCE_SECONDS = 60.0
LONGEST_ANSWER = 2_000
"""Tokens, with what a model thinks: the test is neither on record nor under a budget, so it must be cheap."""
FACTS_SECONDS = 5.0
LONGEST_TAGS = 1_000_000
"""Bytes of what may be the list of an Ollama."""
_TOOL = ToolSpec(
    "report_ready",
    "Report that you are ready. Call this at once.",
    {
        "type": "object",
        "properties": {"ready": {"type": "boolean", "description": "Always true."}},
        "required": ["ready"],
        "additionalProperties": False,
    },
)
_SYSTEM = "This is a test of the connection. Call the tool report_ready and say nothing else."
_SENTENCES = {
    Trouble.BAD_KEY: "The key is wrong: the server refused it.",
    Trouble.MODEL_UNKNOWN: "The server does not know the model “{model}”.",
    Trouble.UNREACHABLE: "Nothing answers at {address}.",
    Trouble.NO_TOOLS: "This model cannot use tools, which agents need.",
    Trouble.OUT_OF_CREDIT: "The key works, but the account has no credit left.",
}

# What is said, or not said, where there is something else than the API.
_NO_API = (Trouble.REFUSED_REQUEST, Trouble.BROKEN_STREAM)


@runtime_checkable
class ListsModels(Protocol):
    def models(self, cancel: CancelToken) -> list[str]: ...


@runtime_checkable
class TellsFacts(Protocol):
    def facts(self, model: str, cancel: CancelToken) -> Capabilities: ...


def test_connection(endpoint: Endpoint, model: str) -> Verdict:
    """Make one real call that offers a tool, and say in a sentence what came of it. Never raises for a failed call."""
    if kind_of(endpoint.kind).is_scripted:
        return Verdict(True, "The demonstration is always there. It needs no key and no network.", tools=True)
    started = time.monotonic()
    with contextlib.closing(connect(endpoint)) as provider:
        try:
            reply = _ask(provider, model)
        except ProviderError as error:
            return _bad_verdict(error, endpoint, model, time.monotonic() - started)
        except Cancelled:
            return Verdict(False, f"No answer within {PATIENCE_SECONDS:.0f} s.", seconds=PATIENCE_SECONDS)
    return _good_verdict(reply, time.monotonic() - started)


def list_models(endpoint: Endpoint) -> list[str]:
    """Return the names of the models there. Raises: ProviderError."""
    kind = kind_of(endpoint.kind)
    if kind.is_scripted:
        return list(kind.models)
    with contextlib.closing(connect(endpoint)) as provider:
        try:
            with _deadline(PATIENCE_SECONDS) as cancel:
                found = provider.models(cancel) if isinstance(provider, ListsModels) else []
        except Cancelled:
            raise errors.failure(Trouble.TIMEOUT, f"no answer within {PATIENCE_SECONDS:.0f} s") from None
    if not found and _lacks_version(endpoint):
        raise errors.failure(Trouble.REFUSED_REQUEST, "it lists no models")
    return found


def learn(endpoint: Endpoint, model: str, seconds: float = FACTS_SECONDS) -> Capabilities:
    """Return what the server itself says that a model can, as far as it does within `seconds`. Never raises for a
    failed call: then nothing is known."""
    if kind_of(endpoint.kind).is_scripted:
        return Capabilities()
    with contextlib.closing(connect(endpoint)) as provider, contextlib.suppress(ProviderError, Cancelled):
        if isinstance(provider, TellsFacts):
            with _deadline(seconds) as cancel:
                return provider.facts(model, cancel)
    return Capabilities()


def find_ollama(base: str = "http://127.0.0.1:11434", timeout: float = 0.4) -> list[tuple[str, int]] | None:
    """Return (model, size in bytes) for each model of the Ollama at `base`; None when there is none.

    timeout: for the whole exchange: whoever answers at Ollama's port need not be Ollama. In seconds.
    """
    place = urlsplit(base)
    line = HTTPConnection(str(place.hostname), place.port, timeout=timeout)
    try:
        with contextlib.closing(line):
            line.connect()
            with _deadline(timeout) as late, late.on_cancel(partial(_hang_up, line.sock)):
                line.request("GET", "/api/tags")
                models = json.loads(line.getresponse().read(LONGEST_TAGS))["models"]
            return [(str(model["name"]), int(model.get("size", 0))) for model in models]
    except (HTTPException, OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _hang_up(line: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other side may have done so
        line.shutdown(socket.SHUT_RDWR)


def _ask(provider: Provider, model: str) -> Reply:
    request = ModelRequest(model, _SYSTEM, [user("Are you ready?")], [_TOOL], LONGEST_ANSWER)
    with _deadline(PATIENCE_SECONDS) as cancel:
        *_, last = provider.stream(request, cancel)
    assert isinstance(last, Reply)
    return last


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[CancelToken]:
    """A token that is set once the whole exchange has taken too long, however lively it is."""
    cancel = CancelToken()
    alarm = threading.Timer(seconds, cancel.cancel, ["too slow"])
    alarm.daemon = True
    alarm.start()
    try:
        yield cancel
    finally:
        alarm.cancel()


def _good_verdict(reply: Reply, seconds: float) -> Verdict:
    if reply.message.calls:
        return Verdict(True, f"Answered in {seconds:.1f} s. Tools work.", tools=True, seconds=seconds)
    return Verdict(
        False,
        f"Answered in {seconds:.1f} s, but without the tool it was asked to use. Agents need a model that uses tools.",
        seconds=seconds,
    )


def _bad_verdict(error: ProviderError, endpoint: Endpoint, model: str, seconds: float) -> Verdict:
    tools = False if error.trouble is Trouble.NO_TOOLS else None
    return Verdict(False, explained(error, endpoint, model), tools=tools, seconds=seconds)


def explained(error: ProviderError, endpoint: Endpoint, model: str) -> str:
    """What is wrong in a sentence, then the server's own words."""
    kind = kind_of(endpoint.kind)
    address = endpoint.base_url or kind.default_base_url
    if error.trouble is Trouble.UNREACHABLE and "connection refused" in error.message.lower():
        return f"{kind.nobody} answers at {address}. Is it running?"
    sentence = _SENTENCES.get(error.trouble)
    if sentence is None:
        misses = error.trouble in _NO_API and _lacks_version(endpoint)
        return f"{error.message} Try the address {address.rstrip('/')}/v1." if misses else error.message
    _headline, _, words = error.message.partition(": ")
    return f"{sentence.format(model=model, address=address)} {words}".rstrip()


def _lacks_version(endpoint: Endpoint) -> bool:
    """Whether the part is missing with which the addresses of such servers end; some print theirs without it."""
    usual = kind_of(endpoint.kind).default_base_url or "/v1"
    return usual.endswith("/v1") and bool(endpoint.base_url) and not urlsplit(endpoint.base_url).path.strip("/")
