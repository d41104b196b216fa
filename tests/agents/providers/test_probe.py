"""Connection tests, lists of models, and the catalogue behind them."""

import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from agents.providers import probe
from agents.providers.base import Endpoint
from agents.providers.catalog import connect, known_kinds
from agents.providers.pool import FreeList, lease
from tests.agents.providers.conftest import KEY
from tests.agents.providers.test_transport import OK, Peer, endless
from tests.llm_server import LLMServer, Reply, Request, Status


def _status(code: int, message: str) -> Status:
    return Status(code, body={"error": {"message": message}})


@pytest.mark.parametrize(
    ("step", "ok", "tools", "words"),
    [
        (Reply(calls=[("report_ready", {"ready": True})]), True, True, "Tools work."),
        (Reply("I am ready."), False, None, "without the tool"),
        (_status(400, "llama2 does not support tools"), False, False, "cannot use tools"),
        (_status(401, f"Incorrect API key provided: {KEY}"), False, None, "key is wrong"),
        (_status(404, "The model `m` does not exist"), False, None, "does not know the model “m”"),
        (_status(500, "oops"), False, None, "oops"),
    ],
)
def test_a_connection_test_says_in_a_sentence_how_it_went(
    server: LLMServer, step: Reply | Status, ok: bool, tools: bool | None, words: str
) -> None:
    server.script([step])
    verdict = probe.test_connection(Endpoint("compatible", server.url, KEY, anywhere=True), "m")
    assert (verdict.ok, verdict.tools) == (ok, tools)
    assert words in verdict.message
    assert KEY not in verdict.message


def test_a_connection_test_asks_for_a_short_answer(server: LLMServer) -> None:
    server.script([Reply(calls=[("report_ready", {"ready": True})])])
    probe.test_connection(Endpoint("compatible", server.url, KEY, anywhere=True), "m")
    (asked,) = server.requests
    assert probe.LONGEST_ANSWER in asked.body.values()


def test_a_server_that_is_not_there_is_named() -> None:
    verdict = probe.test_connection(Endpoint("compatible", "http://127.0.0.1:1/v1", anywhere=True), "m")
    assert not verdict.ok
    assert verdict.message == "Nothing answers at http://127.0.0.1:1/v1. Is it running?"


def test_the_demonstration_is_always_there() -> None:
    assert probe.test_connection(Endpoint("demo"), "demo").ok
    assert probe.list_models(Endpoint("demo")) == ["demo"]


def test_models_are_listed(server: LLMServer) -> None:
    assert probe.list_models(Endpoint("compatible", server.url, KEY, anywhere=True)) == ["m"]


def test_ollama_is_found_or_not(server: LLMServer) -> None:
    server.pages["/api/tags"] = {"models": [{"name": "llama3:8b", "size": 4_700_000_000}]}
    assert probe.find_ollama(server.address) == [("llama3:8b", 4_700_000_000)]
    server.pages["/api/tags"] = ["nonsense"]
    assert probe.find_ollama(server.address) is None
    assert probe.find_ollama("http://127.0.0.1:1") is None


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH\r\n\r\n", OK + b"content-length: 9\r\n\r\n{", endless(OK + b"\r\n[", b"1," * 1_000)]
)
def test_what_answers_in_the_place_of_ollama_does_no_harm(answer: bytes | Iterable[bytes]) -> None:
    with Peer([answer], hangs_up=[0]) as peer:
        assert probe.find_ollama(peer.url) is None


def test_an_address_left_empty_means_the_kinds_own() -> None:
    for kind in known_kinds():
        provider = connect(Endpoint(kind.kind, "", KEY, anywhere=True))
        provider.close()


def test_the_registry_costs_nothing_until_something_is_called() -> None:
    script = (
        "import sys, agents.providers.catalog, agents.providers.pool, agents.providers.probe\n"
        "assert not {'anthropic', 'openai', 'httpx2', 'httpx', 'django'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_connection_serves_run_after_run_but_never_two_at_once(server: LLMServer) -> None:
    endpoint = Endpoint("compatible", server.url, KEY, anywhere=True)
    with lease(endpoint) as one, lease(endpoint) as two:
        first, second = one._client, two._client  # type: ignore[attr-defined]
        assert first is not second
    with lease(endpoint) as again:
        assert again._client in (first, second)  # type: ignore[attr-defined]
    with lease(Endpoint("compatible", server.url, "another key", anywhere=True)) as other:
        assert other._client not in (first, second)  # type: ignore[attr-defined]


def test_the_free_list_is_bounded_and_closes_the_oldest() -> None:
    closed = []

    class Thing:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

    free: FreeList[str, Thing] = FreeList(2)
    for name in "abc":
        free.give("key", Thing(name))
    assert closed == ["a"]
    assert (kept := free.take("key"))
    assert kept.name == "c"
    assert free.take("other") is None


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda body: body["messages"].append({"role": "assistant", "content": " "}), "blank content"),
        (lambda body: body["messages"].append({"role": "tool", "tool_call_id": "x", "content": "y"}), "without a call"),
        (lambda body: body["messages"].insert(0, {"role": "system", "content": "two"}), "two system"),
        (lambda body: body["tools"].append({"function": {"name": "a b"}}), "illegal tool name"),
    ],
)
def test_the_scripted_server_is_strict(damage: Callable[[dict[str, Any]], None], reason: str) -> None:
    from tests.llm_script import violation

    body: dict[str, Any] = {
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}],
        "tools": [],
    }
    damage(body)
    assert reason in violation(Request("POST", "/v1/chat/completions", {}, b"{}", body))
