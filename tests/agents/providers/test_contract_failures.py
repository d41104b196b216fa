"""What every adapter keeps: how a call fails, and that the next one does not."""

from typing import Any

import pytest

from agents.providers.base import (
    NOTHING_USED,
    Endpoint,
    ModelRequest,
    Patience,
    ProviderError,
    Trouble,
)
from agents.providers.catalog import connect
from memory.messages import user
from tests.agents.providers.conftest import KEY, KINDS, Ask
from tests.llm_server import Drop, Hang, LLMServer, Raw, Reply, Status
from tools.cancel import CancelToken

pytestmark = pytest.mark.parametrize("kind", KINDS)
A = ("read_file", {"path": "a.txt"})


def _error(kind: str, message: str) -> dict[str, object]:
    return {"type": "error", "error": {"type": kind, "message": message}}


REFUSALS: list[tuple[int, Any, str, bool]] = [
    (401, {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}, "BAD_KEY", False),
    (401, _error("authentication_error", "invalid x-api-key"), "BAD_KEY", False),
    (429, {"error": {"message": "Slow down", "type": "rate_limit"}}, "RATE_LIMITED", True),
    (429, _error("rate_limit_error", "This would exceed your limit of 50 requests"), "RATE_LIMITED", True),
    (429, {"error": {"code": "insufficient_quota", "message": "no credit"}}, "OUT_OF_CREDIT", False),
    (429, {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota exceeded"}}, "RATE_LIMITED", True),
    (
        429,
        {"error": {"type": "x", "message": "Enough", "details": {"error_code": "enforced_spend_limit_reached"}}},
        "OUT_OF_CREDIT",
        False,
    ),
    (400, _error("invalid_request_error", "Your credit balance is too low to use the API"), "OUT_OF_CREDIT", False),
    (402, _error("billing_error", "There is a problem with your billing"), "OUT_OF_CREDIT", False),
    (404, {"error": {"message": "The model `x` does not exist", "code": "model_not_found"}}, "MODEL_UNKNOWN", False),
    (404, _error("not_found_error", "model: claude-x"), "MODEL_UNKNOWN", False),
    (
        400,
        {"error": {"code": "context_length_exceeded", "message": "maximum context length is 8192"}},
        "TOO_LONG",
        False,
    ),
    (400, _error("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), "TOO_LONG", False),
    (
        400,
        _error("invalid_request_error", "input length and `max_tokens` exceed context limit"),
        "TOO_LONG",
        False,
    ),
    (400, {"error": {"message": "max_tokens must be at least 1, got -1024"}}, "TOO_LONG", False),
    (400, {"error": {"message": "max_tokens is too large: 16000."}}, "ANSWER_LIMIT", False),
    (400, _error("invalid_request_error", "max_tokens: 16000 > 8192, which is the maximum"), "ANSWER_LIMIT", False),
    (422, {"error": {"message": "bad content, input: {'max_tokens': 9}"}}, "REFUSED_REQUEST", False),
    (422, {"error": {"message": f"bad content, input: '{'word ' * 50}max_tokens'"}}, "REFUSED_REQUEST", False),
    (413, b"<html>too large</html>", "TOO_LONG", False),
    (413, _error("request_too_large", "Request exceeds the maximum size"), "TOO_LONG", False),
    (400, {"error": {"message": "strange field"}}, "REFUSED_REQUEST", False),
    (403, _error("permission_error", "Your key may not use this"), "REFUSED_REQUEST", False),
    (500, {"error": {"message": "oops"}}, "OVERLOADED", True),
    (500, _error("api_error", "Internal server error"), "OVERLOADED", True),
    (529, _error("overloaded_error", "Overloaded"), "OVERLOADED", True),
    (503, b"<html>try later</html>", "OVERLOADED", True),
    (504, _error("timeout_error", "Too slow"), "TIMEOUT", True),
]


@pytest.mark.parametrize(("status", "body", "trouble", "retryable"), REFUSALS)
def test_prv_06_k_and_prv_10_d_a_refused_call_says_what_is_wrong_and_whether_to_try_again(
    server: LLMServer, ask: Ask, status: int, body: Any, trouble: str, retryable: bool
) -> None:
    """In any vendor's words: a gateway passes on those of others."""
    server.script([Status(status, body=body), Reply("Well")])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert (caught.value.trouble, caught.value.retryable) == (Trouble[trouble], retryable)
    assert "secret" not in caught.value.message
    assert "<html>" not in caught.value.message
    if isinstance(body, dict) and KEY not in str(body):
        assert str(body["error"]["message"]) in caught.value.message
    assert ask().text == "Well", "the provider is usable afterwards"


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "7"}, 7, 7),
        ({"Retry-After": "1.5"}, 1.5, 2),
        ({"retry-after-ms": "250", "Retry-After": "1"}, 0.25, 1),
        ({"Retry-After": "Wed, 02 Dec 2099 09:00:30 GMT"}, 1e8, 1e10),
        ({"Retry-After": "Wednesday, 02-Dec-26 09:00:30 GMT"}, None, 1e10),
        ({"Retry-After": "Wed, 02 Dec 2020 08:59:00 GMT"}, None, None),
        ({"Retry-After": "null"}, None, None),
        ({"Retry-After": ""}, None, None),
        ({"Retry-After": "soon"}, None, None),
        ({"Retry-After": "-3"}, None, None),
        ({"Retry-After": "inf"}, None, None),
    ],
)
def test_the_asked_for_wait_is_passed_on(
    server: LLMServer, ask: Ask, headers: dict[str, str], least: float | None, most: float | None
) -> None:
    server.script([Status(429, headers, {"error": {"message": "slow down"}})])
    with pytest.raises(ProviderError) as caught:
        ask()
    wait = caught.value.retry_after
    assert (least or 0) <= wait <= most if wait is not None and most else wait is None and least is None


def test_a_key_that_cannot_be_one_is_refused_before_it_is_sent(server: LLMServer, kind: str) -> None:
    provider = connect(Endpoint(kind, server.url, "sk-süß\nX: y", anywhere=True))
    with pytest.raises(ProviderError) as caught:
        list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    assert (caught.value.trouble, caught.value.usage) == (Trouble.BAD_KEY, NOTHING_USED)
    assert "süß" not in str(caught.value)
    assert not server.requests


NOBODY = "http://127.0.0.1:1/v1"


@pytest.mark.parametrize("address", [NOBODY, "nonsense"])
def test_a_server_that_is_not_there_is_unreachable(kind: str, address: str) -> None:
    provider = connect(Endpoint(kind, address, KEY, anywhere=True))
    with pytest.raises(ProviderError) as caught:
        list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    assert (caught.value.trouble, caught.value.usage) == (Trouble.UNREACHABLE, NOTHING_USED)
    assert caught.value.retryable is (address == NOBODY)


def test_a_server_inside_is_reached_by_staff_only(server: LLMServer, kind: str) -> None:
    provider = connect(Endpoint(kind, server.url, KEY, anywhere=False))
    with pytest.raises(ProviderError, match="inside") as caught:
        list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    assert caught.value.usage == NOTHING_USED
    assert not server.requests


@pytest.mark.parametrize("step", [Drop(), Drop(Reply("Half an ans")), Drop(Reply("Half", calls=[A])), Raw([])])
def test_an_answer_that_breaks_off_is_an_error_that_may_be_tried_again(
    server: LLMServer, ask: Ask, step: Drop | Raw
) -> None:
    server.script([step, Reply("A whole answer")])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.retryable
    assert caught.value.trouble in (Trouble.BROKEN_STREAM, Trouble.UNREACHABLE)
    assert caught.value.usage.output_tokens is None, "it may have been worked on"
    assert ask().text == "A whole answer", "the provider is usable afterwards"


@pytest.mark.parametrize(
    ("error", "trouble", "retryable"),
    [
        ({"type": "overloaded_error", "message": "busy"}, Trouble.OVERLOADED, True),
        ({"type": "api_error", "message": "busy"}, Trouble.OVERLOADED, True),
        ({"type": "rate_limit_error", "message": "busy"}, Trouble.RATE_LIMITED, True),
        ({"code": 502, "message": "busy: worker limit reached (33/32)"}, Trouble.OVERLOADED, True),
        ({"type": "invalid_request_error", "message": "prompt is too long, busy"}, Trouble.TOO_LONG, False),
        ("busy", Trouble.BROKEN_STREAM, False),
    ],
)
def test_prv_03_an_error_in_mid_stream_is_raised(
    server: LLMServer, ask: Ask, error: object, trouble: Trouble, retryable: bool
) -> None:
    server.script([Reply("Let me ", error=error)])
    with pytest.raises(ProviderError, match="busy") as caught:
        ask()
    assert (caught.value.trouble, caught.value.retryable) == (trouble, retryable)


def test_a_web_page_is_not_an_answer(server: LLMServer, ask: Ask) -> None:
    server.script([Raw([b"<html>Welcome!</html>"], content_type="text/html")])
    with pytest.raises(ProviderError, match="web page"):
        ask()


def test_signs_of_life_without_output_end_in_a_time_out(server: LLMServer, kind: str) -> None:
    server.script([Raw([b"\n" if kind == "ollama" else b": still here\n\n"] * 100, gap=0.02), Hang(5)])
    provider = connect(Endpoint(kind, server.url, KEY, Patience(idle=0.3, silent=0.2), anywhere=True))
    for _ in range(2):
        with pytest.raises(ProviderError) as caught:
            list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
        assert caught.value.trouble is Trouble.TIMEOUT


# What the SDKs read of the environment, which the operator may have set for something else.
ENVIRONMENT = [
    *(f"OPENAI_{name}" for name in ("API_KEY", "ADMIN_KEY", "ORG_ID", "PROJECT_ID", "BASE_URL", "WEBHOOK_SECRET")),
    *(f"ANTHROPIC_{name}" for name in ("API_KEY", "AUTH_TOKEN", "ORGANIZATION_ID", "BASE_URL", "IDENTITY_TOKEN")),
    *("ANTHROPIC_PROFILE", "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_WEBHOOK_SIGNING_KEY"),
]


@pytest.mark.parametrize("key", ["", "of-the-user"])
def test_nothing_of_the_operators_environment_goes_to_the_server_of_a_user(
    server: LLMServer, kind: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ENVIRONMENT:
        monkeypatch.setenv(name, "https://canary.example" if name.endswith("URL") else "canary")
    for vendor in ("OPENAI", "ANTHROPIC"):
        monkeypatch.setenv(f"{vendor}_CUSTOM_HEADERS", "X-Secret: canary\nAuthorization: Bearer canary")
    server.script([Reply("hi")])
    provider = connect(Endpoint(kind, server.url, key, Patience(idle=59), anywhere=True))
    list(provider.stream(ModelRequest("m", "", [user("hi")]), CancelToken()))
    provider.close()
    (request,) = server.requests
    assert "canary" not in str(request)
