"""Signed thoughts must come back as they were sent (case PRV-08), so a server remembers those it has sent."""

import json
from collections.abc import Iterable, Iterator, Sequence

from tests.llm_steps import Json

SIGNED = ("thinking", "redacted_thinking")


class Thoughts:
    """Of each message that was sent: what must come back with its calls."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, ...], list[Json]] = {}
        self._known: list[Json] = []

    def forget(self) -> None:
        """Take any thought as changed from now on, as a server does that binds them to what came before."""
        self._sent.clear()
        self._known.clear()

    def sent(self, data: bytes) -> None:
        """Take in an answer, a stream or a document."""
        blocks = _whole(data) if data.startswith(b"{") else _streamed(data)
        thoughts = [block for block in blocks if block["type"] in SIGNED]
        self._known += thoughts
        if thoughts and (calls := _calls(blocks)):
            self._sent[calls] = _order(blocks)

    def violation(self, messages: Sequence[Json]) -> str:
        last = max((at for at, message in enumerate(messages) if message.get("role") == "assistant"), default=-1)
        return next((wrong for at, each in enumerate(messages) if (wrong := self._wrong(each, is_open=at == last))), "")

    def _wrong(self, message: Json, *, is_open: bool) -> str:
        """Thoughts may be left out of a message only as a whole, and never while its calls have just been answered."""
        content = message.get("content")
        blocks = content if isinstance(content, list) and message.get("role") == "assistant" else []
        thoughts = [block for block in blocks if block.get("type") in SIGNED]
        if any(_plain(thought) not in self._known for thought in thoughts):
            return "Invalid `signature` in `thinking` block"
        due = self._sent.get(_calls(blocks))
        if due is not None and (thoughts or is_open) and _order(blocks) != due:
            return "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified"
        return ""


def _calls(blocks: Iterable[Json]) -> tuple[str, ...]:
    return tuple(block["id"] for block in blocks if block.get("type") == "tool_use")


def _order(blocks: Iterable[Json]) -> list[Json]:
    """Thoughts with every byte, and the places of the calls between them."""
    return [
        _plain(block) if block["type"] in SIGNED else {"call": block["id"]}
        for block in blocks
        if block["type"] in (*SIGNED, "tool_use")
    ]


def _plain(block: Json) -> Json:
    return {name: value for name, value in block.items() if name != "cache_control"}


def _whole(data: bytes) -> list[Json]:
    answer = json.loads(data)
    return list(answer["content"]) if answer.get("type") == "message" else []


def _streamed(data: bytes) -> list[Json]:
    blocks: dict[str, Json] = {}
    for event in _events(data):
        at = str(event.get("index"))
        if event.get("type") == "content_block_start":
            blocks[at] = dict(event["content_block"])
        elif event.get("type") == "content_block_delta" and at in blocks:
            block = blocks[at]
            for name in ("thinking", "signature"):
                if name in event["delta"]:
                    block[name] = block.get(name, "") + event["delta"][name]
    return list(blocks.values())


def _events(data: bytes) -> Iterator[Json]:
    for line in data.split(b"\n"):
        if line.startswith(b"data: {"):
            yield json.loads(line[6:])
