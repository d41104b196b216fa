"""Translate in: the events of a Messages stream as our deltas and, at the end, one Reply."""

from collections.abc import Collection, Iterator

from pydantic import JsonValue

from agents.providers.anthropic_blocks import CallSoFar, Part, TextSoFar, ThoughtSoFar
from agents.providers.base import Chunk, Finish, Reply, Usage
from memory.messages import Block, Message, ToolUse

type Payload = dict[str, JsonValue]

_FINISH = {
    "max_tokens": Finish.LENGTH,
    "model_context_window_exceeded": Finish.LENGTH,
    "refusal": Finish.REFUSED,
}
_PARAGRAPH = "\n\n"
# No honest reply has as many, and each takes memory however little is in it.
MOST_BLOCKS = 2_000


class MessagesReply:
    """Feed it parsed events; `finish_reason` is None until the server said why it stopped.

    longest: as of `ChatReply`. maker: who seals the thoughts.
    """

    def __init__(self, longest: int, maker: str) -> None:
        self.finish_reason: str | None = None
        self.received = 0
        self.is_over = False
        self._maker = maker
        self._room = self._room_to_think = longest
        self._parts: list[Part] = []
        self._at: dict[object, Part] = {}
        self._fresh: dict[Part, None] = {}
        self._shown: dict[type[Part], Part] = {}
        self._counts: dict[str, int] = {}
        self._counted: int | None = None

    def feed(self, payload: Payload) -> None:
        """Take one event in; those of kinds that nobody knows are passed over."""
        kind = payload.get("type")
        if kind == "content_block_delta":
            self._delta(payload)
        elif kind == "content_block_start":
            self._start(payload.get("index"), payload.get("content_block"))
        elif kind == "message_start":
            self._count(payload.get("message"))
        elif kind == "message_delta":
            self._stop(payload.get("delta"))
            self._count(payload)
            self._counted = self.received
        elif kind == "message_stop":
            self.over()
        elif kind == "message":
            self._whole(payload)
        if self.is_full:
            self.finish_reason = "max_tokens"

    @property
    def usage(self) -> Usage:
        """Cached tokens are counted beside the input, and are part of ours (case COS-01). What a message begins with is
        no count of its output, which is unknown until one covers all that has come (invariant I17)."""
        fresh = self._counts.get("input_tokens")
        output = self._counts.get("output_tokens") if self._counted == self.received else None
        read, written = self._counts.get("cache_read_input_tokens"), self._counts.get("cache_creation_input_tokens")
        whole = None if fresh is None else fresh + (read or 0) + (written or 0)
        return Usage(whole, output, read, written)

    @property
    def is_full(self) -> bool:
        """Whether it is over because there is no room for more."""
        return self._room < 0 or len(self._parts) > MOST_BLOCKS

    def over(self) -> None:
        """The server says that nothing more comes."""
        self.finish_reason = self.finish_reason or "end_turn"
        self.is_over = True

    def deltas(self) -> Iterator[Chunk]:
        """Yield what came since the last time, in the order of the Reply's blocks."""
        fresh, self._fresh = self._fresh, {}
        for part in fresh:
            yield from self._show(part, part.take())

    def end(self, taken: Collection[str]) -> Iterator[Chunk]:
        """Yield what was held back, then the Reply. `taken`: ids of earlier calls, which must not come again."""
        for part in self._parts:
            yield from self._show(part, part.end())
        finish, used = _FINISH.get(self.finish_reason or ""), set(taken)
        last = self._parts[-1] if self._parts else None
        made = (part.block(used, cut=finish is Finish.LENGTH and part is last) for part in self._parts)
        blocks: tuple[Block, ...] = tuple(block for block in made if block)
        ordinary = Finish.TOOL_CALLS if any(isinstance(block, ToolUse) for block in blocks) else Finish.STOP
        yield Reply(Message(role="assistant", blocks=blocks), self.usage, finish or ordinary)

    def _show(self, part: Part, text: str) -> Iterator[Chunk]:
        """The texts of a message are paragraphs, and so are its thoughts."""
        if text:
            before = self._shown.get(type(part), part)
            self._shown[type(part)] = part
            yield part.delta(text if before is part else _PARAGRAPH + text)

    def _start(self, index: JsonValue, block: JsonValue) -> None:
        if isinstance(block, dict) and (part := self._part(block)) and not self.is_full:
            self._parts.append(part)
            self._at[index if isinstance(index, int) else None] = part
            self._take_up(part, part.open(block, self._left(part)))

    def _part(self, block: Payload) -> Part | None:
        match block.get("type"):
            case "text":
                return TextSoFar()
            case "thinking" | "redacted_thinking":
                return ThoughtSoFar(self._maker)
            case "tool_use":
                return CallSoFar()
            case _:
                return None

    def _delta(self, payload: Payload) -> None:
        index, delta = payload.get("index"), payload.get("delta")
        part = self._at.get(index if isinstance(index, int) else None)
        if part and isinstance(delta, dict) and not self.is_full:
            self._take_up(part, part.feed(delta, self._left(part)))

    def _left(self, part: Part) -> int:
        return self._room_to_think if isinstance(part, ThoughtSoFar) else self._room

    def _take_up(self, part: Part, characters: int) -> None:
        self.received += characters
        self._fresh[part] = None
        if isinstance(part, ThoughtSoFar):
            self._room_to_think = max(self._room_to_think - characters, 0)
        else:
            self._room -= characters

    def _stop(self, delta: JsonValue) -> None:
        if not isinstance(delta, dict):
            return
        if isinstance(reason := delta.get("stop_reason"), str) and reason:
            self.finish_reason = reason
        details = delta.get("stop_details")
        if isinstance(details, dict) and (said := details.get("explanation")) and not self._parts:
            self._start(None, {"type": "text", "text": said})

    def _count(self, message: JsonValue) -> None:
        """The counts of a stream are totals that only grow, and are not added up (case COS-02)."""
        usage = message.get("usage") if isinstance(message, dict) else None
        for name, count in usage.items() if isinstance(usage, dict) else ():
            if isinstance(count, int) and not isinstance(count, bool):
                self._counts[name] = max(self._counts.get(name, 0), count)

    def _whole(self, message: Payload) -> None:
        """A server that ignores `stream` sends the message as one document."""
        content = message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else ()):
            self._start(index, block)
        self._stop(message)
        self._count(message)
        self._counted = self.received
        self.over()
