"""Tool calls, put together from the pieces that servers send in their several ways (cases PRV-01, PRV-02, PRV-04)."""

from collections.abc import Collection
from dataclasses import dataclass, field

from pydantic import JsonValue

from agents.providers.arguments import as_object, finished
from memory.encoding import dumps
from memory.messages import ToolUse

# No honest server names so many others in the middle of a call.
LOOKS = 100
# No honest reply makes as many, and each takes memory however little is in it.
MOST_CALLS = 2_000


@dataclass(slots=True)
class _Call:
    id: str = ""
    index: JsonValue = None
    name: str = ""
    seal: str = ""
    arguments: list[str] = field(default_factory=list)
    looks: int = 0

    def looks_whole(self) -> bool:
        """Whether it lacks nothing. Each look costs as much as the call is long, so they are not repeated for ever."""
        self.looks += 1
        text = "".join(self.arguments) if self.looks <= LOOKS else "?"
        return bool(self.name) and (not text or as_object(text) is not None)


class Calls:
    """A new id starts a new call even when the index repeats; a piece that names none of them continues the last.

    The last call is known of each index, and of each id together with an index; None stands for any index.
    maker: who seals the calls.
    """

    def __init__(self, maker: str = "") -> None:
        self._maker = maker
        self._calls: list[_Call] = []
        self._of_index: dict[JsonValue, _Call] = {}
        self._of_id: dict[tuple[str, JsonValue], _Call] = {}

    def feed(self, piece: dict[str, JsonValue], room: int) -> int:
        """Take in one element of `tool_calls`, `room` characters of its arguments at most. Returns how many it brought,
        which may be more; one call too many takes all the room."""
        function = piece.get("function")
        if not isinstance(function, dict):
            return 0
        identity, name, index = _string(piece.get("id")), _string(function.get("name")), _index(piece.get("index"))
        call = self._find(identity, index, name) or self._start(index)
        if identity and not call.id:
            call.id = identity
            self._of_id[identity, None] = self._of_id[identity, call.index] = call
        call.name = call.name or name
        arguments = _text(function.get("arguments"))
        call.arguments.append(arguments[: max(room, 0)])
        brought = len(name) + len(arguments) + self._sealed(call, piece.get("extra_content"), room)
        return brought if len(self._calls) <= MOST_CALLS else brought + room + 1

    def _sealed(self, call: _Call, seal: JsonValue, room: int) -> int:
        """Keep what has to come back with the call as it is, however the vendor calls it inside. Returns its length."""
        if not (self._maker and isinstance(seal, dict) and seal):
            return 0
        text = dumps(seal).decode()
        if len(text) <= room:
            call.seal = text
        return len(text)

    def end(self, taken: Collection[str], *, cut: bool) -> tuple[ToolUse, ...]:
        """Return the calls. `taken` ids are replaced, since an id must be unique in a conversation; `cut`: the output
        limit was hit."""
        used = set(taken)
        return tuple(self._whole(call, used, cut=cut and call is self._calls[-1]) for call in self._calls)

    def _whole(self, call: _Call, used: set[str], *, cut: bool) -> ToolUse:
        use = finished(call.id, call.name, "".join(call.arguments), used, cut=cut)
        return use.model_copy(update={"signature": call.seal, "maker": self._maker}) if call.seal else use

    def _start(self, index: JsonValue) -> _Call:
        call = _Call(index=index)
        self._calls.append(call)
        self._of_index[None] = self._of_index[index] = call
        return call

    def _find(self, identity: str, index: JsonValue, name: str) -> _Call | None:
        """Return the call that a piece continues, None when it starts one."""
        if identity and (same := self._of_id.get((identity, index))):
            return same
        last = self._of_index.get(index)
        if last is None or (identity and last.id):
            return None
        # Servers without ids: another name, once the call before it is whole, can only be the next call.
        return None if name and name != last.name and not identity and last.looks_whole() else last


def _index(value: JsonValue) -> JsonValue:
    return value if isinstance(value, int | float | str) else None


def _string(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _text(arguments: JsonValue) -> str:
    """Arguments are a string of JSON; some servers send the object itself."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else dumps(arguments).decode()
