"""Markup that is still being written, closed for the eye.

The tail of a stream ends anywhere: inside a fence mark, a link address, a bold phrase. What is returned here is only
looked at until the next piece arrives, so a wrong guess costs a moment, never content.
"""

import re

_FENCE_LINE = re.compile(r"(?:^|\n)[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?[`~]{1,2}$")
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*$")
_RUN = re.compile(r"`+")


def close(text: str) -> str:
    """Return `text` (the last paragraph, cell row or heading of a stream) with its open inline markup closed."""
    text = _FENCE_LINE.sub("", text)
    text = _LINK.sub(r"\1", text)
    opener = _open_code_span(text)
    if opener is not None:
        return _closed(text, opener)
    for mark in ("**", "~~"):
        if _without_code(text).count(mark) % 2:
            text = _closed(text, mark)
    return text


def hide_partial_fence(text: str, mark: str) -> str:
    """Return `text`, which ends inside a fence opened by `mark`, without the first characters of its closing line."""
    head, newline, last = text.rpartition("\n")
    stripped = last.strip(" \t>")
    partial = 0 < len(stripped) < len(mark) and set(stripped) == {mark[0]}
    return head if newline and partial else text


def _closed(text: str, mark: str) -> str:
    """Close `mark`, or drop it when nothing has been written after it."""
    bare = text.rstrip()
    if bare.endswith(mark):
        return bare[: -len(mark)]
    return bare + mark


def _open_code_span(text: str) -> str | None:
    opener: str | None = None
    for run in _RUN.findall(text):
        if opener is None:
            opener = run
        elif run == opener:
            opener = None
    return opener


def _without_code(text: str) -> str:
    return re.sub(r"(`+)(?:(?!\1).)*\1", "", text, flags=re.DOTALL)
