"""What a run adds to the thread that the user sees."""

from collections.abc import Sequence
from uuid import UUID, uuid5

from agents.engine.journal import Cell
from agents.providers.base import Reply
from memory.ids import new_id
from memory.messages import Thinking
from memory.metadata import PLAIN, MessageMetadata
from memory.models import MessageType, Source
from tools.attempts import Result


def text_cell(source: Source, text: str, metadata: MessageMetadata = PLAIN) -> Cell:
    return Cell(new_id(), source, MessageType.TEXT, text, metadata.stored())


def tool_cell(message_id: UUID, action_id: UUID) -> Cell:
    return Cell(message_id, Source.AGENT, MessageType.TOOL, "", MessageMetadata(action=action_id).stored())


def thinking_cells(reply: Reply, latency_ms: int) -> list[Cell]:
    """The reasoning that the model showed, as one quiet step."""
    thoughts = "\n\n".join(block.text for block in reply.message.blocks if isinstance(block, Thinking)).strip()
    if not thoughts:
        return []
    metadata = MessageMetadata(interim=True, thinking=True, seconds=round(latency_ms / 1000, 1))
    return [text_cell(Source.AGENT, thoughts, metadata)]


def interim_cells(reply: Reply, latency_ms: int) -> list[Cell]:
    """What the model thought and said beside its calls. Words that a call delivers as well are shown once (LOO-03)."""
    text = reply.message.text.strip()
    if not text or any(text in call.arguments.values() for call in reply.message.calls):
        return thinking_cells(reply, latency_ms)
    return [*thinking_cells(reply, latency_ms), text_cell(Source.AGENT, text, MessageMetadata(interim=True))]


def said_cells(results: Sequence[Result]) -> list[Cell]:
    spoken = ((result.said, MessageMetadata(asks=result.asks)) for result in results if result.said is not None)
    return [text_cell(Source.AGENT, said, metadata) for said, metadata in spoken]


def wait_id(run_id: UUID) -> UUID:
    return uuid5(run_id, "wait")


def wait_cell(run_id: UUID, text: str, metadata: MessageMetadata) -> Cell:
    """The one message of a run about what it waits for by itself: later tries and the last word replace it."""
    return Cell(wait_id(run_id), Source.ERROR, MessageType.TEXT, text, metadata.stored())


def stand_in_cell(message_id: UUID, away: str, answers: str, why: str) -> Cell:
    """A quiet line that says which model answers instead of which; what went wrong unfolds from it."""
    text = f"{away} is out of reach; {answers} answers instead.\n\n{why}"
    return Cell(message_id, Source.AGENT, MessageType.TEXT, text, MessageMetadata(interim=True).stored())
