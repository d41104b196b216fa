"""How each tool of a server stands with its user."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tools.mcp.definitions import Definition, read
from tools.mcp.models import McpServer


class State(StrEnum):
    """CHANGED: accepted once, and something else now. GONE: accepted once, and not there any more."""

    ACCEPTED = "accepted"
    NEW = "new"
    CHANGED = "changed"
    GONE = "gone"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True)
class Standing:
    """definition: as the server said it last; of one that is gone, as it was agreed to."""

    definition: Definition
    state: State
    reads_only: bool


def standing(server: McpServer) -> Sequence[Standing]:
    """Every tool that the server has, in its order, and those that it had."""
    agreed = {each.name: each for each in read(server.accepted)}
    seen = read(server.seen)
    found = [Standing(each, _state(each, agreed), each.name in server.reads_only) for each in seen]
    names = {each.name for each in seen}
    return [
        *found,
        *(Standing(each, State.GONE, reads_only=False) for each in agreed.values() if each.name not in names),
    ]


def _state(now: Definition, agreed: dict[str, Definition]) -> State:
    if now.problem:
        return State.UNUSABLE
    if now.name not in agreed:
        return State.NEW
    return State.ACCEPTED if agreed[now.name].digest == now.digest else State.CHANGED
