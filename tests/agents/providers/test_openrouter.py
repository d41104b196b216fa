"""OpenRouter: what a call cost, which vendors may serve it, and the reasons inside its errors."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from agents.providers import probe
from agents.providers.base import Endpoint, ModelRequest, ProviderError, Routing, Trouble, Usage
from agents.providers.capabilities import Capabilities
from agents.providers.catalog import connect
from memory.messages import user
from tests.agents.providers.conftest import KEY, READ_FILE, Heard
from tests.llm_openrouter import OpenRouterServer, Routed, frame, refusal
from tests.llm_script import D, Raw, Reply, Status
from tools.cancel import CancelToken

MODEL = "vendor/model:free"


@pytest.fixture
def server() -> Iterator[OpenRouterServer]:
    with OpenRouterServer() as running:
        yield running
        assert running.violations == []


def at(server: OpenRouterServer, routing: Routing | None = None) -> Endpoint:
    return Endpoint("openrouter", server.url, KEY, anywhere=True, routing=routing or Routing())


def ask(server: OpenRouterServer, routing: Routing | None = None) -> Heard:
    provider = connect(at(server, routing))
    try:
        request = ModelRequest(MODEL, "Be brief.", [user("hi")], [READ_FILE])
        return Heard(list(provider.stream(request, CancelToken())))
    finally:
        provider.close()


def refused(server: OpenRouterServer, step: Status | Raw) -> ProviderError:
    server.script([step])
    with pytest.raises(ProviderError) as caught:
        ask(server)
    assert KEY not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("reply", "usage"),
    [
        (Routed("hi", usage=(194, 2, 60), cost=0.00014, written=100), Usage(194, 2, 60, 100, Decimal("0.00014"))),
        (Routed("hi", usage=(9, 1), cost=0.1), Usage(9, 1, 0, 0, Decimal("0.1"))),
        (Routed("hi", usage=(9, 1), cost=1e-06), Usage(9, 1, 0, 0, Decimal("0.000001"))),
        (Routed("hi", usage=(9, 1), cost=0.05, upstream=0.3), Usage(9, 1, 0, 0, Decimal("0.35"))),
        (Routed("hi", usage=(9, 1), cost=-1.0), Usage(9, 1, 0, 0, None)),
    ],
)
def test_what_a_call_has_cost_is_what_it_says(server: OpenRouterServer, reply: Routed, usage: Usage) -> None:
    server.script([reply])
    heard = ask(server)
    assert heard.reply.usage == usage
    assert heard.text == "hi"


def test_nothing_is_sent_of_what_is_not_set(server: OpenRouterServer) -> None:
    server.script([Reply("hi")])
    ask(server)
    request = server.requests[0]
    assert not {"provider", "usage", "stream_options"} & set(request.body)
    assert not {"http-referer", "x-title"} & set(request.headers)
    assert request.key == KEY


def test_the_routing_of_a_connection_goes_along(server: OpenRouterServer) -> None:
    routing = Routing(("azure", "openai"), True, True, True, title="Waymark", referer="https://waymark.example")
    server.script([Reply("hi")])
    ask(server, routing)
    request = server.requests[0]
    assert request.body["provider"] == {
        "order": ["azure", "openai"],
        "allow_fallbacks": False,
        "require_parameters": True,
        "data_collection": "deny",
    }
    assert request.headers["x-title"] == "Waymark"
    assert request.headers["http-referer"] == "https://waymark.example"


def test_a_name_may_have_any_letters_but_no_line_of_its_own(server: OpenRouterServer) -> None:
    server.script([Reply("hi")])
    ask(server, Routing(title="Müller 🏃"))
    assert server.requests[0].headers["x-title"].encode("latin-1").decode() == "Müller 🏃"
    with pytest.raises(ProviderError) as caught:
        ask(server, Routing(title="a\r\nX-Evil: b"))
    assert not caught.value.retryable
    assert len(server.requests) == 1


def test_no_others_than_none_is_not_asked_for(server: OpenRouterServer) -> None:
    server.script([Reply("hi")])
    ask(server, Routing(only_these=True))
    assert "provider" not in server.requests[0].body


@pytest.mark.parametrize(
    ("step", "trouble", "retryable", "words"),
    [
        (Status(402, body=refusal(402, "Insufficient credits")), Trouble.OUT_OF_CREDIT, False, "Insufficient credits"),
        (Status(401, body=refusal(401, "User not found.")), Trouble.BAD_KEY, False, "User not found"),
        (
            Status(403, body=refusal(403, "Input was flagged", reasons=["violence", "hate"], provider_name="OpenAI")),
            Trouble.REFUSED_REQUEST,
            False,
            "flagged for violence, hate",
        ),
        (
            Status(502, body=refusal(502, "Provider returned error", provider_name="Azure", raw="upstream timed out")),
            Trouble.OVERLOADED,
            True,
            "Azure says: upstream timed out",
        ),
        (
            Status(429, {"retry-after": "7"}, refusal(429, "Provider returned error", provider_name="X", raw="slow")),
            Trouble.RATE_LIMITED,
            True,
            "X says: slow",
        ),
        (
            Status(404, body=refusal(404, "No endpoints found that support tool use. Try disabling it.")),
            Trouble.NO_TOOLS,
            False,
            "No endpoints",
        ),
        (
            Status(404, body=refusal(404, "No endpoints found matching your data policy (Free model publication).")),
            Trouble.REFUSED_REQUEST,
            False,
            "data policy",
        ),
        (Status(400, body=refusal(400, "x/y is not a valid model ID")), Trouble.MODEL_UNKNOWN, False, "not a valid"),
        (Status(503, body=refusal(503, "No available model provider")), Trouble.OVERLOADED, True, "No available"),
        (
            Status(502, body=refusal(502, "Provider returned error", provider_name="X", raw="<html>bad</html>")),
            Trouble.OVERLOADED,
            True,
            "(X)",
        ),
    ],
)
def test_its_errors_are_translated_with_their_reasons(
    server: OpenRouterServer, step: Status, trouble: Trouble, retryable: bool, words: str
) -> None:
    error = refused(server, step)
    assert (error.trouble, error.retryable) == (trouble, retryable)
    assert words in error.message


def test_prv_03_an_error_in_mid_stream_brings_its_reason(server: OpenRouterServer) -> None:
    failed = frame(refusal(502, "Provider disconnected", provider_name="Azure", raw="reset"))
    error = refused(server, Raw([D({"content": "Good"}), failed]))
    assert (error.trouble, error.retryable) == (Trouble.OVERLOADED, True)
    assert "Azure says: reset" in error.message


def test_what_a_model_can_is_asked_of_those_who_serve_it(server: OpenRouterServer) -> None:
    server.offer(MODEL, images=True)
    server.offer("vendor/plain", tools=False, context=8_000)
    assert probe.learn(at(server), MODEL) == Capabilities(
        tools=True, images=True, thinking=False, context_length=200_000, output_limit=32_000
    )
    assert probe.learn(at(server), "vendor/plain").tools is False
    assert probe.learn(at(server), "nobody/has-it") == Capabilities()
    assert probe.list_models(at(server)) == [MODEL, "vendor/plain"]


def test_the_cost_stays_with_the_router(server: OpenRouterServer) -> None:
    """Elsewhere a field of that name means nothing."""
    server.script([Routed("hi", cost=5.0)])
    provider = connect(Endpoint("compatible", server.url, KEY, anywhere=True))
    heard = Heard(list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken())))
    provider.close()
    assert heard.reply.usage.cost is None
