"""What a vendor says when a call fails, in our words. No message ever holds a key."""

import contextlib
import math
import re
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from agents.providers.base import NOTHING_USED, ProviderError, Trouble, Usage
from memory.text import clip

RETRYABLE = {
    Trouble.UNREACHABLE,
    Trouble.TIMEOUT,
    Trouble.OVERLOADED,
    Trouble.RATE_LIMITED,
    Trouble.BROKEN_STREAM,
}
"""What may pass by waiting."""
_HEADLINES = {
    Trouble.UNREACHABLE: "The model's server could not be reached",
    Trouble.TIMEOUT: "The model's server did not answer in time",
    Trouble.OVERLOADED: "The model's server is overloaded or failing",
    Trouble.RATE_LIMITED: "The model's server limits how fast it may be asked",
    Trouble.OUT_OF_CREDIT: "The account at the model's provider has no credit left",
    Trouble.BAD_KEY: "The API key was refused",
    Trouble.MODEL_UNKNOWN: "The model is not known there",
    Trouble.TOO_LONG: "The conversation is too long for the model",
    Trouble.ANSWER_LIMIT: "The model's server refused the limit that was set to its answer",
    Trouble.NO_TOOLS: "The model cannot use tools, which agents need",
    Trouble.REFUSED_REQUEST: "The model's server refused the request",
    Trouble.BROKEN_STREAM: "The model's answer broke off",
}
_STATUS = {
    401: Trouble.BAD_KEY,
    402: Trouble.OUT_OF_CREDIT,
    408: Trouble.TIMEOUT,
    409: Trouble.OVERLOADED,
    413: Trouble.TOO_LONG,
    429: Trouble.RATE_LIMITED,
    504: Trouble.TIMEOUT,
    524: Trouble.TIMEOUT,
}
# Too long for the model, and for nothing else: a server may say so under any status.
_TOO_LONG = (
    r"context_length_exceeded|exceed_context_size|(prompt_tokens|context_window)_exceeded|context (size|window|length)"
    r"|maximum (context|prompt|model|input) length|(prompt|input) (is |was )?too long|range of input length"
    r"|token count\b.{0,40}exceed|input tokens exceed|more than max tokens allowed"
    r"|\b(prompt|input|request)( [\w()]+){0,3} exceed\w* (the )?(model )?(max|token limit)"
    r"|must have (less|fewer) than \d+ tokens|tokens\b.{0,40}must be <= ?\d"
    r"|reduce the length of (the|your) (message|prompt|input)|request too large for|tokens must be reduced"
)
# What these say does not pass by waiting, whatever words come with them.
_FINAL = {400, 401, 402, 403, 404, 413, 422}
# Tried in order against the vendor's code, type and message; the first that is found decides.
_WORDS = (
    (
        Trouble.OUT_OF_CREDIT,
        r"insufficient_quota|billing_hard_limit|billing_error|spend_limit_reached|(no|any|available|out of) credit"
        r"|insufficient (credit|balance|funds)|credit balance is too low|spending (limit|cap)",
    ),
    (
        Trouble.NO_TOOLS,
        r"not support (tool|function)|no endpoints found that support tool|tools? param requires --jinja"
        r"|tool choice requires --enable",
    ),
    (Trouble.TOO_LONG, r"\binputs?\W+tokens \+ \W*max"),
    (Trouble.ANSWER_LIMIT, r"\bmax\w*tokens\W+must be (less|at most|<|no (more|greater))"),
    (Trouble.TOO_LONG, r"\bmax\w*tokens\W+must be at least \d+, got -"),
    (Trouble.TOO_LONG, rf"{_TOO_LONG}|context limit|too many (input )?tokens"),
    # In its own words, not in those of a request that it repeats after them.
    (Trouble.ANSWER_LIMIT, r"\A.{0,200}?\bmax\w*tokens\b(?![\"']\s*:)"),
    (Trouble.REFUSED_REQUEST, r"no endpoints found matching your data policy"),
    (
        Trouble.BAD_KEY,
        r"invalid_api_key|authentication_error|(incorrect|invalid|wrong|missing|expired).{0,20}api.?key"
        r"|api.?key.{0,20}(not valid|not found|incorrect|invalid|wrong|missing|expired)",
    ),
    (
        Trouble.MODEL_UNKNOWN,
        r"model_not_found|invalid_model|model\b.{0,80}(not found|does not exist|not exist|unknown|not a valid)"
        r"|(unknown|no such|invalid) model|not a valid model",
    ),
    (Trouble.RATE_LIMITED, r"rate.?limit|resource_exhausted|too many requests"),
    (Trouble.TIMEOUT, r"timeout_error"),
    (
        Trouble.OVERLOADED,
        r"overloaded|server_error|api_error|internal.?(server.?)?error|unavailable|capacity|bad gateway",
    ),
)
_LONGEST_ANSWER = re.compile(r"(?:at most|less than or equal to|<=|>|\[\s*\d+\s*,)\W{0,3}(\d{3,7})\b", re.I)
LONGEST_WORDS = 4_000
"""Characters of an error that are looked at: patterns tried on a body of megabytes hold the whole process up."""
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|key|gsk|xai|AIza)[-_][A-Za-z0-9_*.\-]{6,}|\bAIza[\w-]{10,}|Bearer\s+\S+", re.I)
# How Python begins what the system says of a connection.
_ERRNO = re.compile(r"\[Errno -?\d+\] ")


def scrub(text: str, key: str) -> str:
    """Return `text` without `key` and without anything that looks like one (vendors repeat it, partly starred)."""
    if key:
        text = text.replace(key, "[key]")
    return _KEY_LIKE.sub("[key]", text)


def failure(
    trouble: Trouble,
    words: str = "",
    *,
    key: str = "",
    retryable: bool | None = None,
    retry_after: float | None = None,
    usage: Usage | None = None,
    status: int = 0,
    is_denial: bool = False,
    longest: int | None = None,
) -> ProviderError:
    """Build the error: our headline, then the vendor's own words on one line. `retryable` is the rule of `trouble`
    unless given; the rest is as in ProviderError."""
    spoken = clip(scrub(_ERRNO.sub("", words), key), 400)
    end = "" if spoken.endswith((".", "!", "?", "…")) else "."
    message = f"{_HEADLINES[trouble]}: {spoken}{end}" if spoken else f"{_HEADLINES[trouble]}."
    retryable = trouble in RETRYABLE if retryable is None else retryable
    return ProviderError(
        trouble,
        message,
        retryable=retryable,
        retry_after=retry_after,
        usage=usage,
        status=status,
        is_denial=is_denial,
        longest=longest,
    )


def from_status(status: int, body: object, headers: Mapping[str, str], key: str) -> ProviderError:
    """Translate an HTTP answer of 400 or more. `body` is parsed JSON, or text when it was not JSON.

    What was refused for its own sake (below 500) was never worked on and has used nothing, unless it took too long.
    """
    words, hints = _short(_read_error(body))
    trouble = _trouble_of(status, hints)
    is_denial = trouble is not Trouble.TIMEOUT
    return failure(
        trouble,
        words or f"HTTP {status}",
        key=key,
        retry_after=retry_after(headers),
        usage=NOTHING_USED if is_denial and status < 500 else None,
        status=status,
        is_denial=is_denial,
        longest=_longest_answer(words) if trouble is Trouble.ANSWER_LIMIT else None,
    )


def from_frame(error: object, key: str, usage: Usage) -> ProviderError:
    """Translate an error that arrives inside a stream of status 200 (case PRV-03).

    Only what is known to pass is retryable: a bare word tells nothing of that kind.
    """
    words, hints = _short(_read_error({"error": error}))
    code = error.get("code") if isinstance(error, dict) else None
    status = _status(code)
    trouble = _trouble_of(status, hints)
    known = trouble is not Trouble.REFUSED_REQUEST or status in _FINAL
    return failure(
        trouble if known else Trouble.BROKEN_STREAM,
        words or "no reason given",
        key=key,
        usage=usage,
        retryable=known and trouble in RETRYABLE,
        status=status,
    )


def _status(code: object) -> int:
    """Of HTTP, as a number or in digits; 0 when it is none."""
    if isinstance(code, str) and len(code) == 3 and code.isascii() and code.isdigit():
        code = int(code)
    return code if isinstance(code, int) and 100 <= code <= 599 else 0


def _longest_answer(words: str) -> int | None:
    """The limit that a server names which has refused another one."""
    found = _LONGEST_ANSWER.search(words)
    return int(found[1]) if found else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the vendor asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as an HTTP date (of
    RFC 9110 in any of its forms), which is read by the vendor's own clock when the answer says what that shows.

    None for anything else, for a time in the past and for nonsense (case PRV-06).
    """
    with contextlib.suppress(ValueError):
        if milliseconds := _positive(float(headers.get("retry-after-ms", ""))):
            return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    with contextlib.suppress(ValueError):
        return _positive(float(value))
    until = _timestamp(value)
    if until is None:
        return None
    now = _timestamp(headers.get("date", ""))
    return _positive(until - (time.time() if now is None else now))


def _timestamp(date: str) -> float | None:
    """The moment that a date of HTTP names; the form of asctime says no zone, which means UTC."""
    with contextlib.suppress(ValueError, TypeError, OverflowError):
        moment = parsedate_to_datetime(date)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None


def _positive(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) and seconds > 0 else None


def _trouble_of(status: int, hints: str) -> Trouble:
    named = next((trouble for trouble, words in _WORDS if _found(words, hints)), None)
    if status in _FINAL and named in RETRYABLE:
        named = None
    if (status == 429 or status >= 500) and named is Trouble.TOO_LONG and _found(_TOO_LONG, hints):
        return Trouble.TOO_LONG
    if status == 429:
        return Trouble.OUT_OF_CREDIT if named is Trouble.OUT_OF_CREDIT else Trouble.RATE_LIMITED
    if status in _STATUS:
        return _STATUS[status]
    if status >= 500:
        return Trouble.OVERLOADED
    if status == 404:
        return named or (Trouble.MODEL_UNKNOWN if "model" in hints.lower() else Trouble.REFUSED_REQUEST)
    return named or Trouble.REFUSED_REQUEST


def _found(pattern: str, hints: str) -> bool:
    return re.search(pattern, hints, re.I | re.S) is not None


def _short(read: tuple[str, str]) -> tuple[str, str]:
    words, hints = read
    return words[:LONGEST_WORDS], hints[:LONGEST_WORDS]


def _read_error(body: object) -> tuple[str, str]:
    """Return the vendor's sentence, and everything that may classify it."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, str):
        return ("", "") if body.lstrip().startswith("<") else (body, body)
    if not isinstance(body, dict):
        return "", ""
    error = body.get("error") or body
    if not isinstance(error, dict):
        return str(error), str(error)
    words = str(error.get("message") or error.get("detail") or body.get("message") or body.get("detail") or "")
    details = error.get("details")
    marks = [error.get(name) for name in ("code", "type", "status")]
    marks += [details.get("error_code")] if isinstance(details, dict) else []
    return words, " ".join((words, *(str(mark or "") for mark in marks)))
