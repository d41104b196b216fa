"""The result of a foreign tool, as text for the model."""

from typing import TYPE_CHECKING, Any

from memory.encoding import dumps
from memory.text import clean, shortened

if TYPE_CHECKING:
    from mcp_types import CallToolResult

LONGEST = 200_000


def text_of(result: "CallToolResult") -> str:
    """Everything in it that is text; of the rest what it is. Models get no more than an observation holds anyway."""
    parts = [_part(block) for block in result.content]
    if not any(parts) and result.structured_content is not None:
        parts = [dumps(result.structured_content).decode()]
    return shortened(clean("\n".join(part for part in parts if part)), LONGEST)


def _part(block: Any) -> str:
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio":
            return f"[{block.type}, {block.mime_type}, {len(block.data) * 3 // 4:,} bytes, not shown]"
        case "resource_link":
            return f"[{block.name}: {block.uri}]"
        case "resource":
            inside = getattr(block.resource, "text", None)
            return str(inside) if inside is not None else f"[{block.resource.uri}, not shown]"
        case _:
            return f"[{block.type}, not shown]"
