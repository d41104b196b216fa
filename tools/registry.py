"""The tools of `AGENT_TOOLS`: an explicit list of dotted paths, loaded on first use and checked at start-up."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from tools.base import Audience, Tool

type AnyTool = Tool[Any]


@cache
def all_tools() -> Mapping[str, AnyTool]:
    """Every tool by name.

    Raises:
        ImportError: a path leads nowhere.
    """
    found: dict[str, AnyTool] = {}
    for path in settings.AGENT_TOOLS:
        tool: AnyTool = import_string(path)()
        found[tool.name] = tool
    return MappingProxyType(found)


def tools_for(audience: Audience, switched_off: frozenset[str], *, has_archives: bool = False) -> Mapping[str, AnyTool]:
    """The tools that an agent is offered, in the order of AGENT_TOOLS (a stable prompt prefix)."""
    suits = {name: tool for name, tool in all_tools().items() if audience in tool.audience and name not in switched_off}
    return {
        name: tool for name, tool in suits.items() if (has_archives or not tool.needs_archives) and not tool.withheld()
    }


def find(name: str) -> AnyTool | None:
    return all_tools().get(name)
