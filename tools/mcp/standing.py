"""How each tool of a server stands with its user."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tools.mcp.definitions import Definition, first_fitting, read
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
    """
    definition: as the server said it last; of one that is gone, as it was agreed to. chosen: what is proposed to be
    agreed to: what is in use, and at the first look as many as agents can have. reads_only: its user has said so of
    what it is now. agreed: what one that has changed said when it was agreed to.
    """

    definition: Definition
    state: State
    reads_only: bool
    chosen: bool
    agreed: Definition | None = None


def standing(server: McpServer) -> Sequence[Standing]:
    """Every tool that the server has, in its order, and those that it had."""
    agreed = {each.name: each for each in read(server.accepted)}
    seen = read(server.seen)
    states = {each.name: _state(each, agreed) for each in seen}
    in_use = {name for name, state in states.items() if state is State.ACCEPTED}
    chosen = in_use if agreed else {each.name for each in first_fitting(seen)}
    found = [
        Standing(
            each,
            states[each.name],
            reads_only=states[each.name] is State.ACCEPTED and each.name in server.reads_only,
            chosen=each.name in chosen,
            agreed=agreed[each.name] if states[each.name] is State.CHANGED else None,
        )
        for each in seen
    ]
    names = {each.name for each in seen}
    return [
        *found,
        *(
            Standing(each, State.GONE, reads_only=False, chosen=False)
            for each in agreed.values()
            if each.name not in names
        ),
    ]


def chosen_by(tools: Iterable[Standing], digests: Collection[str], reads_only: Collection[str]) -> list[Standing]:
    """The same as somebody has chosen them, when that could not be taken as it was."""
    return [
        replace(each, chosen=each.definition.digest in digests, reads_only=each.definition.name in reads_only)
        for each in tools
    ]


def _state(now: Definition, agreed: dict[str, Definition]) -> State:
    if now.problem:
        return State.UNUSABLE
    if now.name not in agreed:
        return State.NEW
    return State.ACCEPTED if agreed[now.name].digest == now.digest else State.CHANGED
