"""What a call needs before it may run: nothing, or a person's word (mission D9, D10).

The loop knows none of it. A tool says what it risks, its user how far it is trusted with a goal, and the mark of the
run whether a stranger may be speaking through it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from tools.attempts import Attempt
from tools.base import Effect, Reversal, Risk, ToolContext
from tools.models import Cause
from tools.registry import AnyTool


class Mode(StrEnum):
    """How far a person trusts a tool with one of their agents."""

    OFF = "off"
    ASK = "ask"
    AUTO = "auto"


def usual(tool: AnyTool) -> Mode:
    """The mode of a tool that nobody has set."""
    return Mode.ASK if tool.risk is Risk.RESTRICTED else Mode.AUTO


def modes(tool: AnyTool) -> Sequence[Mode]:
    """Those that a person may choose. What cannot be undone must be approved, each time or in exactly one form."""
    return (Mode.OFF, Mode.ASK) if tool.reversal is Reversal.IRREVERSIBLE else tuple(Mode)


def off(chosen: Mapping[str, str]) -> frozenset[str]:
    """Names of tools that are switched off."""
    return frozenset(name for name, mode in chosen.items() if mode == Mode.OFF)


@dataclass(frozen=True, slots=True)
class Policy:
    """
    chosen: the modes that a person has set, by name of the tool.
    is_trusted: whether a standing word of a person covers a call.
    """

    chosen: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    is_trusted: Callable[[Attempt], bool] = lambda attempt: False

    def cause(self, attempt: Attempt, context: ToolContext, *, repeats_unknown: bool) -> Cause | None:
        """Why a call that is valid needs a person's word; None when it does not. What strangers may have asked for
        always does, whatever was chosen or trusted.

        Args:
            repeats_unknown: whether an identical call of the same run has an unknown outcome.
        """
        tool = attempt.tool
        assert tool is not None
        if attempt.risk is Risk.FORBIDDEN:
            return None
        if context.sources and _reaches_others(attempt, tool, context):
            return Cause.UNTRUSTED
        if repeats_unknown:
            return Cause.REPEATS_UNKNOWN
        cause = self._asks(attempt, tool)
        return None if cause is None or (not context.sources and self.is_trusted(attempt)) else cause

    def _asks(self, attempt: Attempt, tool: AnyTool) -> Cause | None:
        mode = self.chosen.get(tool.name)
        if mode == Mode.ASK:
            return Cause.CHOSEN
        if attempt.risk is Risk.RESTRICTED and (mode != Mode.AUTO or Mode.AUTO not in modes(tool)):
            return Cause.RESTRICTED
        return None


def _reaches_others(attempt: Attempt, tool: AnyTool, context: ToolContext) -> bool:
    """Whether what a call does, or what it says, goes where text of strangers may not send it."""
    if attempt.effect is Effect.PURE:
        return tool.tells_others(context.sources)
    return not tool.is_contained(attempt.arguments, context)


def valid(chosen: Mapping[str, str], known: Iterable[AnyTool]) -> dict[str, str]:
    """Of some choices those that mean something: of tools that exist, in modes that they have, other than the usual."""
    return {
        tool.name: chosen[tool.name]
        for tool in known
        if chosen.get(tool.name) in modes(tool) and chosen[tool.name] != usual(tool)
    }
