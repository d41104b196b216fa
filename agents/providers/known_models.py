"""What is known of models whose servers do not say it. Only figures that their vendors publish; whoever is not here is
unknown. When a vendor brings out a model, add its line and move the date.
"""

import re
from collections.abc import Mapping

from agents.providers.capabilities import Capabilities

SOURCES = ("https://developers.openai.com/api/docs/models", "https://platform.claude.com/docs/en/models")
DATE = "2026-11-28"

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})$")


def _all(context_length: int, output_limit: int | None, *, thinking: bool) -> Capabilities:
    """A model that calls tools, several at once, and sees images, as all of these do."""
    return Capabilities(True, True, True, thinking, context_length, output_limit)


_OPENAI = {
    "gpt-5.4-mini": _all(400_000, 128_000, thinking=True),
    "gpt-5.4-nano": _all(400_000, 128_000, thinking=True),
    "gpt-5.4": _all(1_050_000, 128_000, thinking=True),
    "gpt-5.1": _all(400_000, 128_000, thinking=True),
    "gpt-5": _all(400_000, 128_000, thinking=True),
    "gpt-5-mini": _all(400_000, 128_000, thinking=True),
    "gpt-5-nano": _all(400_000, 128_000, thinking=True),
    "gpt-4.1": _all(1_047_576, 32_768, thinking=False),
    "gpt-4.1-mini": _all(1_047_576, 32_768, thinking=False),
    "gpt-4.1-nano": _all(1_047_576, 32_768, thinking=False),
    "gpt-4o": _all(128_000, 16_384, thinking=False),
    "gpt-4o-mini": _all(128_000, 16_384, thinking=False),
}
_ANTHROPIC = {
    "claude-fable-5-2": _all(1_000_000, 128_000, thinking=True),
    "claude-fable-5-1": _all(1_000_000, 128_000, thinking=True),
    "claude-opus-5-5": _all(1_000_000, 128_000, thinking=True),
    "claude-sonnet-5-5": _all(1_000_000, 128_000, thinking=True),
    "claude-haiku-5-5": _all(1_000_000, None, thinking=True),
    "claude-opus-5": _all(1_000_000, 128_000, thinking=True),
    "claude-sonnet-5": _all(1_000_000, 128_000, thinking=True),
    "claude-opus-4-8": _all(1_000_000, 128_000, thinking=True),
    "claude-opus-4-7": _all(1_000_000, 128_000, thinking=True),
    "claude-opus-4-6": _all(1_000_000, 128_000, thinking=True),
    "claude-sonnet-4-6": _all(1_000_000, 128_000, thinking=True),
    "claude-opus-4-5": _all(200_000, 64_000, thinking=True),
    "claude-sonnet-4-5": _all(200_000, 64_000, thinking=True),
    "claude-haiku-4-5": _all(200_000, 64_000, thinking=True),
    "claude-opus-4-1": _all(200_000, 32_000, thinking=True),
}
_KNOWN: Mapping[str, Mapping[str, Capabilities]] = {"openai": _OPENAI, "anthropic": _ANTHROPIC}
_UNKNOWN = Capabilities()


def known(kind: str, model: str) -> Capabilities:
    """What `model` can at a provider of `kind`, by the table; a dated snapshot can what its model can."""
    return _KNOWN.get(kind, {}).get(_SNAPSHOT.sub("", model), _UNKNOWN)
