"""What the model sees: messages as pure values.

A value has no id and no row; equal content is equal. Rows, ids and times live in `memory.models`, vendor formats in
`agents.providers`.
"""

import re
from collections.abc import Callable, Iterable
from typing import Annotated, Final, Literal
from uuid import UUID
from xml.sax.saxutils import quoteattr

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter

type Role = Literal["user", "assistant", "tool"]


class Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Text(Value):
    type: Literal["text"] = "text"
    text: str


class Thinking(Value):
    """Reasoning. With a signature it must go back to its maker exactly as it came, and to nobody else (case PRV-08).

    signature: opaque; None when the words are for people only, or for their maker if there is one.
    redacted: the vendor shows no words, and `signature` is all there is.
    maker: the host that signed it, or that gets its own words back; empty for words that go to nobody.
    """

    type: Literal["thinking"] = "thinking"
    text: str
    signature: str | None = None
    redacted: bool = False
    maker: str = ""


class ToolUse(Value):
    """A call that the model asked for.

    `arguments` is always a JSON object, so that the call can be sent back to any vendor. When the model's own text was
    not one, `problem` says why (for the model) and the call must be answered with an error, never executed.

    signature: JSON that must go back to `maker`, a host, with the call exactly as it came, and to nobody else.
    """

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    arguments: dict[str, JsonValue]
    problem: str | None = None
    signature: str | None = None
    maker: str = ""


class ToolResult(Value):
    """The answer to the call with the same `id`; `content` is never blank."""

    type: Literal["tool_result"] = "tool_result"
    id: str
    content: str
    is_error: bool = False


class Image(Value):
    """A picture of the user, by reference: the bytes are asked for when the message is sent (`ModelRequest.load`).

    width, height: in pixels. size: in bytes. longest: pixels of the longer side in this request; such a block is never
    stored.
    """

    type: Literal["image"] = "image"
    id: UUID
    name: str
    media_type: Literal["image/png", "image/jpeg"]
    width: int
    height: int
    size: int
    longest: int | None = None

    @property
    def told(self) -> str:
        """What stands before the picture, so that it can be spoken of by its name."""
        return f"<image name={quoteattr(self.name)}/>"


class File(Value):
    """A file of the user. `text` is its beginning when it is text, None when it cannot be read."""

    type: Literal["file"] = "file"
    id: UUID
    name: str
    media_type: str
    size: int
    text: str | None = None

    @property
    def told(self) -> str:
        """The file in words. Its text cannot close the tag, and so speak as the user."""
        about = f'name={quoteattr(self.name)} type={quoteattr(self.media_type)} bytes="{self.size}"'
        if self.text is None:
            return f"<file {about}>This kind of file cannot be shown to you.</file>"
        return f"<file {about}>\n{_CLOSING.sub('&lt;/file', self.text)}\n</file>"


_CLOSING = re.compile("</file", re.IGNORECASE)

type Block = Annotated[Text | Image | File | Thinking | ToolUse | ToolResult, Field(discriminator="type")]

WORDLESS: Final = "(I attached this without a word.)"
"""What stands for the words of a message that has none."""

BLOCKS: TypeAdapter[tuple[Block, ...]] = TypeAdapter(tuple[Block, ...])


class Message(Value):
    role: Role
    blocks: tuple[Block, ...]

    @property
    def text(self) -> str:
        """All text blocks, joined by an empty line."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def words(self) -> str:
        """What was said or came back, without the context that precedes a user's words."""
        texts = [block.text for block in self.blocks if isinstance(block, Text)]
        results = [block.content for block in self.blocks if isinstance(block, ToolResult)]
        return "\n\n".join(texts[-1:] if self.role == "user" else [*texts, *results])

    @property
    def attached(self) -> tuple[Image | File, ...]:
        return tuple(block for block in self.blocks if isinstance(block, Image | File))

    @property
    def calls(self) -> tuple[ToolUse, ...]:
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))


def user(text: str) -> Message:
    return Message(role="user", blocks=(Text(text=text),))


def assistant(text: str, calls: Iterable[ToolUse] = ()) -> Message:
    """An assistant message; blank text makes no block, because strict vendors refuse one (case HIS-04)."""
    spoken = (Text(text=text),) if text.strip() else ()
    return Message(role="assistant", blocks=(*spoken, *calls))


def tool(result: ToolResult) -> Message:
    return Message(role="tool", blocks=(result,))


def rewritten(message: Message, text: Callable[[str], str], result: Callable[[str], str]) -> Message:
    """Return the message with each of its texts, and the content of each result and file, as these functions give them;
    the very same message when that changes nothing."""
    return with_blocks(message, (_rewritten(block, text, result) for block in message.blocks))


def with_blocks(message: Message, blocks: Iterable[Block]) -> Message:
    """Return the message with other blocks; the very same one when they are its own. Signed thoughts go as a whole when
    anything beside them has changed, because a vendor refuses those that stand with other words (case PRV-08)."""
    given = tuple(blocks)
    if given == message.blocks:
        return message
    return Message(role=message.role, blocks=tuple(block for block in given if not _is_signed(block)))


def _is_signed(block: Block) -> bool:
    return isinstance(block, Thinking) and block.signature is not None


def _rewritten(block: Block, text: Callable[[str], str], result: Callable[[str], str]) -> Block:
    match block:
        case Text(text=words) if (changed := text(words)) != words:
            return Text(text=changed)
        case ToolResult(content=words) if (changed := result(words)) != words:
            return block.model_copy(update={"content": changed})
        case File(text=str(words)) if (changed := result(words)) != words:
            return block.model_copy(update={"text": changed})
        case _:
            return block
