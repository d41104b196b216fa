"""The credentials that a server is given, kept out of what it says: it may repeat them."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import orjson
from django.core.exceptions import ImproperlyConfigured

from memory.secrets import unseal
from tools.mcp.complaints import masked
from tools.mcp.models import McpSignIn
from tools.mcp.programs import program_of
from tools.mcp.transports import Target

KEY: Final = re.compile(r"(?!/|\w+://)\S{16,}")
"""No path and no address, and longer than words are."""


def without_credentials(text: str, target: Target) -> str:
    """Return what a server has said of an error, for whoever may read it: its page, its user's agents, the record."""
    return masked(text, _credentials(target))


def without_keys(text: str, target: Target) -> str:
    """Return the result of a call. What is given may also be a word or a folder that results are about; those stay."""
    lines = (line.strip() for each in _credentials(target) for line in each.splitlines())
    return masked(text, filter(KEY.fullmatch, lines))


def _credentials(target: Target) -> list[str]:
    try:
        return [*_given(target)]
    except ImproperlyConfigured:  # the key of the database is gone, so it was given none
        return []


def _given(target: Target) -> Iterator[str]:
    for value in orjson.loads(unseal(target.sealed_headers) or "{}").values():
        yield value
        yield value.partition(" ")[2]  # as it stands behind “Bearer”
    for _name, value in parse_qsl(urlsplit(target.url).query):
        yield value
    if program := program_of(target.argv):
        yield from program.environment.values()
    sign_in = McpSignIn.objects.filter(grant=target.grant).first() if target.grant else None
    if sign_in is not None and sign_in.is_done:
        from tools.mcp.oauth import Tokens

        tokens = Tokens.model_validate_json(unseal(sign_in.sealed_tokens))
        yield from (token for token in (tokens.access, tokens.refresh) if token)
