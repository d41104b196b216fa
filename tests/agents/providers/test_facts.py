"""What servers of the compatible kind say of their models, each in its own place."""

from collections.abc import Iterator
from typing import Any

import pytest

from agents.providers import probe
from agents.providers.base import Endpoint
from agents.providers.capabilities import Capabilities
from tests.llm_server import LLMServer

LIST = "/v1/models"


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with LLMServer() as running:
        yield running


def facts(server: LLMServer, kind: str = "compatible") -> Capabilities:
    return probe.learn(Endpoint(kind, server.url, "key", anywhere=True), "m")


@pytest.mark.parametrize(
    ("entry", "known"),
    [
        ({"max_model_len": 32_768}, Capabilities(context_length=32_768)),
        (
            {"context_window": 131_072, "max_completion_tokens": 8_192},
            Capabilities(context_length=131_072, output_limit=8_192),
        ),
        (
            {"max_context_length": 9_000, "capabilities": {"function_calling": True, "vision": False}},
            Capabilities(tools=True, images=False, context_length=9_000),
        ),
        ({"context_length": "many"}, Capabilities()),
        ({"context_length": -1}, Capabilities()),
        ({"context_length": True}, Capabilities()),
        ({"capabilities": ["x"]}, Capabilities()),
    ],
)
def test_a_list_of_models_says_it(server: LLMServer, entry: dict[str, Any], known: Capabilities) -> None:
    server.pages[LIST] = {"data": [{"id": "another", "max_model_len": 5}, {"id": "m", **entry}]}
    assert facts(server) == known


def test_what_stands_beside_the_address_is_asked_for_below_the_same_path(server: LLMServer) -> None:
    endpoint = Endpoint("compatible", f"{server.address}/gpu/v1", "key", anywhere=True)
    server.pages |= {"/gpu/v1/models": {"data": [{"id": "m"}]}, "/props": {"modalities": {"vision": True}}}
    server.pages["/gpu/props"] = {"default_generation_settings": {"n_ctx": 16_384}}
    server.pages["/gpu/api/v0/models/m"] = {"type": "llm", "capabilities": ["tool_use"]}
    assert probe.learn(endpoint, "m") == Capabilities(tools=True, images=False, context_length=16_384)


def test_llama_cpp_says_it_in_its_properties(server: LLMServer) -> None:
    server.pages["/props"] = {
        "default_generation_settings": {"n_ctx": 16_384},
        "chat_template_caps": {"supports_tools": True, "supports_parallel_tool_calls": False},
        "modalities": {"vision": True, "audio": False},
    }
    assert facts(server) == Capabilities(tools=True, parallel_calls=False, images=True, context_length=16_384)


def test_lm_studio_says_it_of_each_model(server: LLMServer) -> None:
    server.pages["/api/v0/models/m"] = {
        "type": "vlm",
        "max_context_length": 131_072,
        "loaded_context_length": 4_096,
        "capabilities": ["tool_use"],
    }
    assert facts(server) == Capabilities(tools=True, images=True, context_length=4_096)


@pytest.mark.parametrize("page", [[], "text", {"data": "no list"}, {"data": [1, None, {"id": 7}]}, None])
def test_what_is_no_list_says_nothing(server: LLMServer, page: object) -> None:
    server.pages[LIST] = page
    server.pages["/props"] = page if page is not None else {"modalities": [], "default_generation_settings": 3}
    assert facts(server) == Capabilities()


def test_a_server_that_is_not_there_says_nothing() -> None:
    assert probe.learn(Endpoint("compatible", "http://127.0.0.1:1/v1", anywhere=True), "m") == Capabilities()


def test_openai_itself_is_not_asked(server: LLMServer) -> None:
    server.pages[LIST] = {"data": [{"id": "m", "max_model_len": 1}]}
    assert facts(server, "openai") == Capabilities()


@pytest.mark.parametrize(
    "stored", [{}, {"tools": "yes", "images": 1, "context_length": 1.5}, {"context_length": 10**12}, {"what": True}]
)
def test_facts_that_make_no_sense_are_unknown(stored: dict[str, Any]) -> None:
    assert Capabilities.read(stored) == Capabilities()


def test_who_is_nearer_is_believed() -> None:
    user, server = Capabilities(tools=False), Capabilities(tools=True, context_length=5)
    assert user.over(server) == Capabilities(tools=False, context_length=5)
    assert Capabilities.read(user.over(server).stored()) == user.over(server)
