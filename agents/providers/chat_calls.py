"""Tool calls, put together from the pieces that servers send in their several ways (cases PRV-01, PRV-02, PRV-04)."""

from collections.abc import Collection
from dataclasses import dataclass, field
from uuid import uuid4

from pydantic import JsonValue

from agents.providers.chat_body import legal_name
from agents.providers.codec import loads
from memory.encoding import dumps
from memory.messages import ToolUse
from memory.text import clean, clean_json

_INCOMPLETE = "The arguments were incomplete or not a JSON object, so the call was not made. Make the call again."
_CUT = (
    "The output limit was hit inside the arguments, so they are incomplete and the call was not made. "
    "Make the call again with shorter arguments, or do the work in several calls."
)


@dataclass(slots=True)
class _Call:
    id: str = ""
    index: JsonValue = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    @property
    def is_whole(self) -> bool:
        text = "".join(self.arguments)
        return bool(self.name) and (not text or _object(text) is not None)


class Calls:
    """A new id starts a new call even when the index repeats; a piece that names none of them continues the last."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def feed(self, piece: dict[str, JsonValue]) -> int:
        """Take in one element of `tool_calls`. Returns the number of characters that it brought."""
        function = piece.get("function")
        if not isinstance(function, dict):
            return 0
        identity, name = _string(piece.get("id")), _string(function.get("name"))
        call = self._find(identity, piece.get("index"), name)
        if call is None:
            call = _Call(index=piece.get("index"))
            self._calls.append(call)
        call.id, call.name = call.id or identity, call.name or name
        arguments = _text(function.get("arguments"))
        call.arguments.append(arguments)
        return len(name) + len(arguments)

    def end(self, taken: Collection[str], *, cut: bool) -> tuple[ToolUse, ...]:
        """Return the calls. `taken` ids are replaced, since an id must be unique in a conversation; `cut`: the output
        limit was hit."""
        used = set(taken)
        return tuple(_finished(call, used, cut and call is self._calls[-1]) for call in self._calls)

    def _find(self, identity: str, index: JsonValue, name: str) -> _Call | None:
        """Return the call that a piece continues, None when it starts one."""
        same = [call for call in self._calls if identity and call.id == identity and index in (None, call.index)]
        if same:
            return same[-1]
        candidates = [call for call in self._calls if index in (None, call.index)]
        if not candidates or (identity and candidates[-1].id):
            return None
        last = candidates[-1]
        # Servers without ids: another name, once the call before it is whole, can only be the next call.
        return None if name and name != last.name and not identity and last.is_whole else last


def _string(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _text(arguments: JsonValue) -> str:
    """Arguments are a string of JSON; some servers send the object itself."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dumps(arguments).decode()


def _finished(call: _Call, used: set[str], cut: bool) -> ToolUse:
    identity = clean(call.id)
    if not identity.strip() or identity in used:
        identity = f"call_{uuid4().hex[:24]}"
    used.add(identity)
    text = "".join(call.arguments)
    arguments = {} if not text.strip() and not cut else _object(text)
    if arguments is not None:
        return ToolUse(id=identity, name=legal_name(call.name), arguments=arguments)
    problem = _CUT if cut else _INCOMPLETE
    return ToolUse(id=identity, name=legal_name(call.name), arguments={}, problem=problem)


def _object(text: str) -> dict[str, JsonValue] | None:
    try:
        value = clean_json(loads(text))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
