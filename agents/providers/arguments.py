"""The end of a tool call that has come in pieces: its arguments are an object, or it says why there are none.

Cut arguments are never repaired: what they would do is not what the model meant (case PRV-04).
"""

from uuid import uuid4

from pydantic import JsonValue

from agents.providers.codec import loads_exactly
from agents.providers.names import legal_name
from memory.messages import ToolUse
from memory.text import clean, clean_json

_INCOMPLETE = "The arguments were incomplete or not a JSON object, so the call was not made. Make the call again."
_CUT = (
    "The output limit was hit inside the arguments, so they are incomplete and the call was not made. "
    "Make the call again with shorter arguments, or do the work in several calls."
)


def finished(identity: str, name: str, text: str, used: set[str], *, cut: bool) -> ToolUse:
    """Return the call whose arguments are `text`.

    Args:
        used: ids of other calls, to which its own is added; it gets another when it has none or one of them.
        cut: the output limit was hit while it was written.
    """
    identity = clean(identity)
    if not identity.strip() or identity in used:
        identity = f"call_{uuid4().hex[:24]}"
    used.add(identity)
    arguments = {} if not text.strip() and not cut else as_object(text)
    if arguments is not None:
        return ToolUse(id=identity, name=legal_name(name), arguments=arguments)
    return ToolUse(id=identity, name=legal_name(name), arguments={}, problem=_CUT if cut else _INCOMPLETE)


def as_object(text: str) -> dict[str, JsonValue] | None:
    """Return the JSON object that `text` is, cleaned; None when it is none."""
    try:
        value = clean_json(loads_exactly(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
