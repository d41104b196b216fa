"""A scripted model server, and a way to ask it something through a provider."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack

import pytest

from agents.providers.base import Chunk, Endpoint, ModelRequest, Provider, Reply, TextDelta, ThinkingDelta
from agents.providers.catalog import connect, known_kinds
from memory.messages import Message, ToolResult, tool, user
from tests.llm_ollama import OllamaServer
from tests.llm_openrouter import OpenRouterServer
from tests.llm_server import LLMServer
from tools.base import ToolSpec
from tools.cancel import CancelToken

READ_FILE = ToolSpec(
    "read_file", "Read a file.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
)
KEY = "sk-test-4711-very-secret"
KINDS = [kind.kind for kind in known_kinds() if not kind.is_scripted]


def answered(message: Message) -> list[Message]:
    """Return a message with a result for each of its calls."""
    return [message, *(tool(ToolResult(id=call.id, content="done")) for call in message.calls)]


class Heard:
    """What came out of one call."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        assert isinstance(chunks[-1], Reply), "a Reply is the last item of a stream"
        assert not any(isinstance(chunk, Reply) for chunk in chunks[:-1])
        self.reply = chunks[-1]
        self.message = self.reply.message
        self.text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextDelta))
        self.thinking = "".join(chunk.text for chunk in chunks if isinstance(chunk, ThinkingDelta))
        assert self.text == self.message.text, "the deltas, joined, are the text"

    @property
    def calls(self) -> list[tuple[str, str, dict[str, object]]]:
        return [(call.id, call.name, dict(call.arguments)) for call in self.message.calls]


type Ask = Callable[..., Heard]


SERVERS: dict[str, type[LLMServer]] = {"ollama": OllamaServer, "openrouter": OpenRouterServer}


@pytest.fixture(scope="session")
def shared_servers() -> Iterator[Callable[[type[LLMServer]], LLMServer]]:
    with ExitStack() as running:
        kept: dict[type[LLMServer], LLMServer] = {}
        yield lambda made: kept.get(made) or kept.setdefault(made, running.enter_context(made()))


@pytest.fixture
def server(shared_servers: Callable[[type[LLMServer]], LLMServer], kind: str) -> Iterator[LLMServer]:
    """As strict as those of the kind that is asked."""
    shared = shared_servers(SERVERS.get(kind, LLMServer))
    shared.reset()
    yield shared
    assert shared.violations == []


@pytest.fixture
def kind() -> str:
    """Of the provider that is asked; modules that test others say so."""
    return "compatible"


@pytest.fixture
def provider(server: LLMServer, kind: str) -> Iterator[Provider]:
    connected = connect(Endpoint(kind, server.url, KEY, anywhere=True))
    yield connected
    connected.close()


@pytest.fixture
def ask(provider: Provider) -> Ask:
    """Ask the provider; by default something short, with a tool offered."""

    def asking(*messages: Message, cancel: CancelToken | None = None, **facts: object) -> Heard:
        asked = {
            "model": "m",
            "system": "Be brief.",
            "messages": messages or [user("hi")],
            "tools": [READ_FILE],
            **facts,
        }
        return Heard(list(provider.stream(ModelRequest(**asked), cancel or CancelToken())))  # type: ignore[arg-type]

    return asking
