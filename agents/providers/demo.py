"""A provider without a model: scripted, without key and network, so that everything else can be tried at once.

It sees what every provider sees, a ModelRequest, and drives the real loop and the real tools.
"""

import re
from collections.abc import Iterator

from agents.providers.base import Chunk, Endpoint, Finish, ModelRequest, Reply, TextDelta, ThinkingDelta, Usage
from agents.providers.demo_mind import decide
from agents.providers.demo_rules import Call
from memory.messages import Block, File, Image, Message, Text, Thinking, ToolResult, ToolUse
from tools.cancel import CancelToken

_CHARACTERS_PER_TOKEN = 4
_WORD = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")


class DemoProvider:
    """Implements `Provider`. `delay`: seconds between words."""

    def __init__(self, endpoint: Endpoint, *, delay: float = 0.025) -> None:
        self._delay = delay

    def stream(self, request: ModelRequest, cancel: CancelToken) -> Iterator[Chunk]:
        cancel.check()
        step = decide(request)
        if isinstance(step, Call):
            yield from self._speak(ThinkingDelta, step.thought, cancel)
            call = ToolUse(id=_next_id(request), name=step.tool, arguments=step.arguments)
            yield _reply(request, (Thinking(text=step.thought), call), Finish.TOOL_CALLS)
        else:
            yield from self._speak(TextDelta, step.text, cancel)
            yield _reply(request, (Text(text=step.text),), Finish.STOP)

    def close(self) -> None:
        """Nothing is held."""

    def _speak(self, kind: type[TextDelta] | type[ThinkingDelta], text: str, cancel: CancelToken) -> Iterator[Chunk]:
        for word in _WORD.findall(text):
            cancel.sleep(self._delay)
            yield kind(word)


def _next_id(request: ModelRequest) -> str:
    return f"demo_{sum(len(message.calls) for message in request.messages) + 1}"


def _reply(request: ModelRequest, blocks: tuple[Block, ...], finish: Finish) -> Reply:
    message = Message(role="assistant", blocks=blocks)
    read = len(request.system) + sum(map(_length, request.messages))
    return Reply(message, Usage(_tokens(read), _tokens(_length(message)), 0), finish)


def _tokens(characters: int) -> int:
    """An estimate: nothing is counted where nothing is paid."""
    return characters // _CHARACTERS_PER_TOKEN + 1


def _length(message: Message) -> int:
    return sum(map(_block_length, message.blocks))


def _block_length(block: Block) -> int:
    match block:
        case ToolUse():
            return len(block.name) + len(str(block.arguments))
        case ToolResult():
            return len(block.content)
        case Text() | Thinking():
            return len(block.text)
        case File():
            return len(block.told)
        case Image():
            return 0  # the demonstration sees none
