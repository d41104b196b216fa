"""What servers say when they refuse a call, in the words of many vendors: gateways pass on those of others."""

from typing import Any

import pytest

from agents.providers.base import ProviderError, Trouble
from tests.agents.providers.conftest import Ask
from tests.llm_server import LLMServer, Status


def _said(message: str, **marks: object) -> dict[str, object]:
    return {"error": {"message": message, **marks}}


TOO_LONG: dict[str, tuple[int, Any]] = {
    "anthropic": (400, _said("prompt is too long: 210000 tokens > 200000 maximum")),
    "openai": (400, _said("Input tokens exceed the configured limit of 272000 tokens.", code="invalid_request_error")),
    "openai_tpm": (
        429,
        _said(
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 36748. The input or output "
            "tokens must be reduced in order to run successfully.",
            type="tokens",
            code="rate_limit_exceeded",
        ),
    ),
    "gemini": (
        400,
        [_said("The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", code=400)],
    ),
    "xai": (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 215450 tokens.",
        },
    ),
    "kimi": (400, _said("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)")),
    "bedrock": (400, _said("Input is too long for requested model.")),
    "copilot": (400, _said("prompt token count of 150000 exceeds the limit of 128000", code="x")),
    "glm": (400, _said("Prompt exceeds max length", code="1261")),
    "qwen": (400, _said("Range of input length should be [1, 129024]", code="invalid_parameter_error")),
    "minimax": (400, _said("invalid params, context window exceeds limit")),
    "mistral": (
        400,
        {"message": "Prompt has 65673 tokens, too large for model with 32768 maximum context length"},
    ),
    "poolside": (400, _said("Input length 200000 exceeds the maximum allowed input length of 131072 tokens.")),
    "tgi": (422, {"error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000"}),
    "together": (422, _said("Input validation error: `inputs` must have less than 8192 tokens. Given: 9000")),
    "groq": (400, _said("Please reduce the length of the messages or completion.")),
    "ollama": (400, {"error": "the input length exceeds the context length"}),
    "vllm": (500, _said("This model's maximum context length is 8192 tokens.")),
    "gateway": (503, _said("upstream: context_length_exceeded")),
}


@pytest.mark.parametrize(("status", "body"), TOO_LONG.values(), ids=TOO_LONG)
def test_prv_10_too_long_is_understood_in_every_vendors_words(
    server: LLMServer, ask: Ask, status: int, body: Any
) -> None:
    server.script([Status(status, body=body)])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert (caught.value.trouble, caught.value.retryable) == (Trouble.TOO_LONG, False)
    assert not caught.value.refuses_content


@pytest.mark.parametrize(
    ("status", "words", "trouble"),
    [
        (429, "Too many tokens, please wait before trying again.", Trouble.RATE_LIMITED),
        (429, "Rate limit reached on tokens per min: Limit 30000, Used 29000, Requested 4000.", Trouble.RATE_LIMITED),
        (429, "Quota exceeded for metric: free_tier_input_token_count, limit: 250000", Trouble.RATE_LIMITED),
        (429, "Your request exceeds the limit of 50 requests per minute", Trouble.RATE_LIMITED),
        (503, "Too many tokens are in flight", Trouble.OVERLOADED),
        (400, "messages.3.tool_calls.0.function.name exceeds maximum length of 64", Trouble.REFUSED_REQUEST),
        (400, "Invalid 'messages[1].content': string too long", Trouble.REFUSED_REQUEST),
    ],
)
def test_prv_10_other_limits_are_not_taken_for_it(
    server: LLMServer, ask: Ask, status: int, words: str, trouble: Trouble
) -> None:
    server.script([Status(status, body=_said(words))])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.trouble is trouble


XAI_403 = "Your newly created team doesn't have any credits yet. You can purchase credits on the console."
XAI_429 = "Your team has either used all available credits or reached its monthly spending limit."


@pytest.mark.parametrize(
    ("status", "body", "trouble"),
    [
        (400, [_said("API key not valid. Please pass a valid API key.", status="INVALID_ARGUMENT")], Trouble.BAD_KEY),
        (400, [_said("API key expired. Please renew the API key.", status="INVALID_ARGUMENT")], Trouble.BAD_KEY),
        (400, [_said("API Key not found. Please pass a valid API key.", status="INVALID_ARGUMENT")], Trouble.BAD_KEY),
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided: xa***yz."}, Trouble.BAD_KEY),
        (403, _said("The API key is invalid"), Trouble.BAD_KEY),
        (403, {"code": "The caller does not have permission", "error": XAI_403}, Trouble.OUT_OF_CREDIT),
        (429, {"code": "Some resource has been exhausted", "error": XAI_429}, Trouble.OUT_OF_CREDIT),
        (429, _said("Your account is suspended due to insufficient balance, please recharge"), Trouble.OUT_OF_CREDIT),
        (429, _said("Your project has exceeded its monthly spending cap."), Trouble.OUT_OF_CREDIT),
        (400, _said("Insufficient funds on this account"), Trouble.OUT_OF_CREDIT),
        (429, [_said("You exceeded your current quota.", status="RESOURCE_EXHAUSTED")], Trouble.RATE_LIMITED),
        (400, _said("Unknown parameter: 'spending'"), Trouble.REFUSED_REQUEST),
    ],
)
def test_a_key_and_a_credit_that_do_not_work_are_understood_in_other_words(
    server: LLMServer, ask: Ask, status: int, body: Any, trouble: Trouble
) -> None:
    """What is taken for a refusal of the content would be tried with plainer and plainer histories."""
    server.script([Status(status, body=body)])
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.trouble is trouble
    assert caught.value.refuses_content is (trouble is Trouble.REFUSED_REQUEST)
