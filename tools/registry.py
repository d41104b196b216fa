"""The tools of `AGENT_TOOLS`: an explicit list of dotted paths, loaded on first use and checked at start-up; and beside
them those of the servers that a user has named (`tools.mcp`)."""

from collections.abc import Collection, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from tools.base import Audience, Tool, Wording
from tools.mcp import offered
from tools.mcp.words import wording_of

type AnyTool = Tool[Any]


@cache
def all_tools() -> Mapping[str, AnyTool]:
    """Every tool of our own by name.

    Raises:
        ImportError: a path leads nowhere.
    """
    found: dict[str, AnyTool] = {}
    for path in settings.AGENT_TOOLS:
        tool: AnyTool = import_string(path)()
        found[tool.name] = tool
    return MappingProxyType(found)


def tools_of(user_id: int) -> Mapping[str, AnyTool]:
    """Every tool that agents of a user can have been given: our own, which nothing shadows, then those of their
    servers, also of one that is off at the moment."""
    return _beside(offered.known_to(user_id))


def tools_for(
    audience: Audience,
    switched_off: frozenset[str],
    packs: Collection[str] = (),
    *,
    has: Collection[str] = (),
    user_id: int | None = None,
    context_type: str = "",
) -> Mapping[str, AnyTool]:
    """The tools that an agent is offered: those of AGENT_TOOLS in their order (a stable prompt prefix), then those of
    the user's servers.

    Args:
        packs: those that are switched on.
        has: what of `Needs` the agent has.
        context_type: of the run.
    """
    found = all_tools() if user_id is None else _beside(offered.offered_to(user_id))
    suits = {name: tool for name, tool in found.items() if audience in tool.audience and name not in switched_off}
    return {
        name: tool
        for name, tool in suits.items()
        if tool.needs in ("", *has)
        and tool.pack in ("", *packs)
        and tool.context_type in ("", context_type)
        and not tool.withheld()
    }


def _beside(foreign: Mapping[str, AnyTool]) -> Mapping[str, AnyTool]:
    own = all_tools()
    return {**own, **{name: tool for name, tool in foreign.items() if name not in own}}


def find(name: str, user_id: int | None = None) -> AnyTool | None:
    """A tool by its name. user_id: whose servers are looked at, too."""
    own = all_tools().get(name)
    return own if own is not None or user_id is None else offered.find(user_id, name)


def why_off(user_id: int, name: str) -> str:
    """Why an agent is not offered a tool of a server that its user has agreed to, as a sentence; else empty."""
    return "" if name in all_tools() else offered.why_off(user_id, name)


def words_of(name: str) -> Wording | None:
    """How cells speak of a tool, also of one of a server; without a look at the database."""
    own = all_tools().get(name)
    return own.wording if own is not None else wording_of(name)
