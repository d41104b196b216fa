"""Translate in: the chunks of a Chat Completions stream as our deltas and, at the end, one Reply."""

from collections.abc import Collection, Iterator
from dataclasses import replace

from pydantic import JsonValue

from agents.providers.base import Chunk, Finish, Reply, TextDelta, ThinkingDelta, Usage
from agents.providers.chat_calls import Calls
from agents.providers.events import Payload
from agents.providers.pieces import Pieces
from memory.messages import Block, Message, Text, Thinking

_FINISH = {"length": Finish.LENGTH, "max_tokens": Finish.LENGTH, "content_filter": Finish.REFUSED}


class ChatReply:
    """Feed it parsed chunks; `finish_reason` is None until the server said why it stopped.

    longest: characters that are taken of text and calls together, and of thoughts. The reply ends with the first
    (`is_full`), while thoughts that go on are only let go: nobody sees them, and a good answer may follow.
    maker: who may want back what it has thought; empty for nobody.
    """

    def __init__(self, longest: int, maker: str = "") -> None:
        self.finish_reason: str | None = None
        self.received = 0
        self.is_over = False
        self._room = self._room_to_think = longest
        self._refused = False
        self._told, self._counted = Usage(), 0
        self._text = Pieces()
        self._thinking = Pieces()
        self._calls = Calls(maker)
        self._maker = maker
        self._thinker = ""

    def feed(self, payload: Payload) -> None:
        """Take one chunk in. `choices` may be empty or missing, as in counts of tokens (case PRV-05)."""
        choices = payload.get("choices")
        if isinstance(choices, list) and choices and isinstance(choices[0], dict) and not self.is_full:
            self._choice(choices[0])
        usage = payload.get("usage")
        if isinstance(usage, dict):
            self._told, self._counted = self._usage(usage, _plain(payload.get("model"))), self.received

    @property
    def usage(self) -> Usage:
        """What a server has counted before the rest came is no count of the output, nor its cost (invariant I17)."""
        is_whole = self._counted == self.received
        return self._told if is_whole else replace(self._told, output_tokens=None, cost=None)

    @property
    def is_full(self) -> bool:
        """Whether it is over because there is no room for more."""
        return self._room < 0

    def over(self) -> None:
        """The server says that nothing more comes."""
        self.finish_reason = self.finish_reason or "stop"
        self.is_over = True

    def deltas(self) -> Iterator[Chunk]:
        """Yield what came since the last time, of each kind in one piece, in the order of the Reply's blocks."""
        yield from _deltas(self._thinking.take(), self._text.take())

    def end(self, taken: Collection[str]) -> Iterator[Chunk]:
        """Yield what was held back, then the Reply. `taken`: ids of earlier calls, which must not come again."""
        yield from _deltas(self._thinking.end(), self._text.end())
        blocks: list[Block] = []
        if self._thinking.text:
            blocks.append(Thinking(text=self._thinking.text, maker=self._thinker))
        if self._text.text:
            blocks.append(Text(text=self._text.text))
        cut = _FINISH.get(self.finish_reason or "") is Finish.LENGTH
        calls = self._calls.end(taken, cut=cut)
        yield Reply(Message(role="assistant", blocks=(*blocks, *calls)), self.usage, self._finish(bool(calls)))

    def _finish(self, has_calls: bool) -> Finish:
        if self._refused:
            return Finish.REFUSED
        ordinary = Finish.TOOL_CALLS if has_calls else Finish.STOP
        return _FINISH.get(self.finish_reason or "", ordinary)

    def _choice(self, choice: Payload) -> None:
        # A server that ignores `stream` sends the whole message in the delta's place.
        delta = choice.get("delta") or choice.get("message")
        if isinstance(delta, dict):
            self._delta(delta)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:
            self.finish_reason = reason
        if self.is_full:
            self.finish_reason = "length"

    def _delta(self, delta: Payload) -> None:
        if thought := _plain(delta.get("reasoning_content")):
            self._thinker = self._maker  # Who gives thoughts this name takes them back under it.
        if thought := thought or _plain(delta.get("reasoning")):
            self.received += len(thought)
            self._thinking.feed(thought[: self._room_to_think])
            self._room_to_think = max(self._room_to_think - len(thought), 0)
        refusal = _plain(delta.get("refusal"))
        self._refused = self._refused or bool(refusal)
        if text := _plain(delta.get("content")) + refusal:
            self._text.feed(text[: self._room])
            self._take_up(len(text))
        pieces = delta.get("tool_calls")
        if isinstance(pieces, list):
            for piece in pieces:
                if isinstance(piece, dict) and not self.is_full:
                    self._take_up(self._calls.feed(piece, self._room))

    def _usage(self, usage: Payload, model: str) -> Usage:
        return _usage(usage, model)

    def _take_up(self, characters: int) -> None:
        self.received += characters
        self._room -= characters


def _deltas(thought: str, text: str) -> Iterator[Chunk]:
    if thought:
        yield ThinkingDelta(thought)
    if text:
        yield TextDelta(text)


def _plain(content: JsonValue) -> str:
    """Return text that is a string, or, as some servers send it, a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_plain(part.get("text")) for part in content if isinstance(part, dict))
    return ""


def _usage(usage: Payload, model: str) -> Usage:
    """Servers that count along repeat a running total, so the last one holds (case COS-02)."""
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else usage.get("prompt_cache_hit_tokens")
    prompt, output, total = (count(usage.get(f"{name}_tokens")) for name in ("prompt", "completion", "total"))
    if prompt is not None and output is not None and total is not None:
        # Some count the reasoning beside the completion, but all count it in the total.
        output = max(output, total - prompt)
    return Usage(prompt, output, count(cached), model=model)


def count(value: JsonValue) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
