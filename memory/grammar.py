"""What every vendor demands of a history, asserted before each model call (docs/reliability.md, invariant I9)."""

from collections.abc import Sequence
from typing import Self

from memory.messages import Message, Text, ToolResult, ToolUse


class Ungrammatical(AssertionError):
    """A history that strict vendors refuse was about to be sent."""


class Grammar:
    """Checks a history that only grows: what was checked is not looked at again."""

    def __init__(self) -> None:
        self._checked = 0
        self._ids: set[str] = set()
        self._owed: list[str] = []

    def grown(self, messages: Sequence[Message]) -> Self | None:
        """A copy that has read `messages` as well; None when they do not go on what it has read."""
        copy = type(self)()
        copy._checked, copy._ids, copy._owed = self._checked, set(self._ids), list(self._owed)
        try:
            copy._go_on(messages)
        except Ungrammatical:
            return None
        return copy

    def check(self, messages: Sequence[Message]) -> None:
        """
        Raises:
            Ungrammatical: a call without its one result directly after it, a result without a call, an id used
                twice, or a block without content.
        """
        self._go_on(messages[self._checked :])

    def _go_on(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._read(message)
        self._checked += len(messages)
        if self._owed:
            raise Ungrammatical(f"calls without a result: {self._owed}")

    def _read(self, message: Message) -> None:
        if not message.blocks:
            raise Ungrammatical("a message without content")
        if message.role == "tool":
            self._read_results(message)
        elif self._owed:
            raise Ungrammatical(f"calls without a result: {self._owed}")
        else:
            self._read_words(message)

    def _read_results(self, message: Message) -> None:
        for block in message.blocks:
            if not isinstance(block, ToolResult) or not block.content.strip():
                raise Ungrammatical("not a result")
            if not self._owed or self._owed.pop(0) != block.id:
                raise Ungrammatical(f"a result without a call: {block.id}")

    def _read_words(self, message: Message) -> None:
        for block in message.blocks:
            match block:
                case Text(text=text) if not text.strip():
                    raise Ungrammatical("a blank text")
                case ToolResult(id=name):
                    raise Ungrammatical(f"a result outside its place: {name}")
                case ToolUse(id=name) if name in self._ids or message.role != "assistant":
                    raise Ungrammatical(f"a call that may not be here: {name}")
                case ToolUse(id=name):
                    self._ids.add(name)
                    self._owed.append(name)
