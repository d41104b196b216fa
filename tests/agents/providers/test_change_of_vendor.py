"""A conversation that changes its vendor on the way, with calls and thoughts in it."""

import itertools
from collections.abc import Callable, Iterator, Sequence

import pytest

from agents.providers.base import Endpoint, ModelRequest, Provider, Reply
from agents.providers.catalog import connect
from memory.messages import Message, user
from tests.agents.providers.conftest import KEY, READ_FILE, answered
from tests.llm_server import LLMServer, Reply as Said
from tools.cancel import CancelToken

type Connect = Callable[[str], Provider]


@pytest.fixture
def kind() -> str:
    """Whose server speaks the dialects of all of them."""
    return "ollama"


@pytest.fixture
def connecting(server: LLMServer) -> Iterator[Connect]:
    made: list[Provider] = []

    def one(kind: str) -> Provider:
        made.append(connect(Endpoint(kind, server.url, KEY, anywhere=True)))
        return made[-1]

    yield one
    for provider in made:
        provider.close()


def _turn(server: LLMServer, provider: Provider, messages: list[Message], memo: dict[str, object]) -> None:
    """Two steps with calls in them, thoughts and all, and an answer."""
    calls = [("read_file", {"path": "a.txt"}), ("read_file", {"path": "b.txt"})]
    thinking = {"thinking": f"Thought {len(messages)}", "redacted": "hidden"}
    server.script([Said("One.", calls=calls, **thinking), Said(calls=calls[:1], **thinking), Said("Done.", **thinking)])  # type: ignore[arg-type]
    messages.append(user(f"Question {len(messages)}"))
    for _ in range(3):
        *_, reply = provider.stream(ModelRequest("m", "Be brief.", messages, [READ_FILE], memo=memo), CancelToken())
        assert isinstance(reply, Reply)
        messages += answered(reply.message)


@pytest.mark.parametrize(
    "kinds",
    [("openai", "anthropic", "openai"), ("anthropic", "openai", "anthropic"), ("anthropic", "ollama", "anthropic")],
    ids=" ".join,
)
@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "anew"])
def test_a_history_may_change_its_vendor_and_come_back(
    server: LLMServer, connecting: Connect, kinds: Sequence[str], is_kept: bool
) -> None:
    memo: dict[str, object] = {}
    messages: list[Message] = []
    for kind in kinds:
        _turn(server, connecting(kind), messages, memo if is_kept else {})
        messages = [Message.model_validate_json(message.model_dump_json()) for message in messages]
    of_first = [request.raw for request in server.requests if request.path == server.requests[0].path]
    for earlier, later in itertools.pairwise(of_first):
        assert later.startswith(earlier.rstrip(b"]}")), "and its first vendor finds its cache as it left it"
    seals = [b"signature" in request.raw or b"redacted" in request.raw for request in server.requests]
    assert not any(seal for seal, request in zip(seals, server.requests, strict=True) if "chat" in request.path)
