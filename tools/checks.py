"""Start-up checks: a tool that is wrong must not wait for a model to find out."""

import os.path
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning as CheckWarning, register
from django.utils.module_loading import import_string

from tools.base import Effect, Reversal, Risk, Tool
from tools.restoring import Restorer

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@register("tools")
def check_tools(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    tools: list[type[Tool[Any]]] = []
    problems: list[CheckMessage] = []
    for path in settings.AGENT_TOOLS:
        try:
            tools.append(import_string(path))
        except ImportError as error:
            problems.append(Error(f"AGENT_TOOLS: {error}", hint=f"Correct or remove {path!r}.", id="tools.E001"))
    twice = [name for name, count in Counter(tool.name for tool in tools).items() if count > 1]
    problems += [Error(f"Two tools are called {name!r}.", id="tools.E002") for name in twice]
    problems += [problem for tool in tools for problem in _check(tool)]
    return [*problems, *_check_restorers()]


@register("tools")
def check_programs(app_configs: object, **kwargs: object) -> list[CheckMessage]:
    """Whatever a program of an MCP server is to see must be there, or it is not started."""
    listed = settings.WAYMARK_MCP_COMMANDS
    places = [place for each in listed for place in (each.command[0], *each.read, *each.write) if "/" in place]
    gone = [place for place in dict.fromkeys(places) if not os.path.exists(place)]
    return [CheckWarning(f"WAYMARK_MCP_COMMANDS: {place} is not there.", id="tools.W001") for place in gone]


def _check_restorers() -> Iterator[CheckMessage]:
    kinds: Counter[str] = Counter()
    for path in settings.AGENT_RESTORERS:
        try:
            restorer = import_string(path)
        except ImportError as error:
            yield Error(f"AGENT_RESTORERS: {error}", hint=f"Correct or remove {path!r}.", id="tools.E008")
            continue
        if isinstance(restorer, type) and issubclass(restorer, Restorer):
            kinds[restorer.kind] += 1
        else:
            yield Error(f"AGENT_RESTORERS: {path!r} is no Restorer.", id="tools.E010")
    for kind, count in kinds.items():
        if count > 1:
            yield Error(f"Two restorers are for {kind!r}.", id="tools.E009")


def _check(tool: type[Tool[Any]]) -> list[CheckMessage]:
    problems: list[CheckMessage] = []
    if not NAME.fullmatch(tool.name):
        problems.append(Error(f"{tool.name!r} is no name that every vendor takes.", id="tools.E003"))
    if not tool.description.strip():
        problems.append(Error(f"{tool.name} has no description.", id="tools.E004"))
    if tool.effect is not Effect.PURE and tool.reversal is Reversal.NOTHING:
        problems.append(Error(f"{tool.name} has an effect but does not say how it is taken back.", id="tools.E005"))
    if tool.reversal is Reversal.IRREVERSIBLE and tool.risk is Risk.ALLOWED:
        problems.append(Error(f"{tool.name} cannot be undone, so it must need approval.", id="tools.E006"))
    if tool.effect is Effect.VERIFIABLE and tool.probe is Tool.probe:
        problems.append(Error(f"{tool.name} is verifiable, so it must have a probe.", id="tools.E007"))
    return problems
