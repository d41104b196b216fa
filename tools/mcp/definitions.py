"""What a server says of its tools: mended where that is harmless, fingerprinted, and made fit for models."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from memory.encoding import dumps
from memory.text import clean, clip, legible
from tools.mcp.naming import offered_as
from tools.mcp.schema import MOST_PARTS, Parts, Unusable, normalised

LONGEST_DESCRIPTION: Final = 1_000
MOST_TOOLS: Final = 64
MOST_SCHEMAS: Final = 100_000
"""Of the tools that agents have of one server, all schemas together, as JSON, in bytes."""
MOST_KEPT: Final = 2_000_000
"""The same of all that it offers, from which its user chooses."""

BROKEN: Final = "x-waymark-broken"


@dataclass(frozen=True, slots=True)
class Definition:
    """A tool of a server.

    name: the server's own. offered: what models call it. digest: of everything that the server says of it.
    schema: as models get it. problem: why it cannot be offered, for people; empty when it can.
    """

    name: str
    offered: str
    description: str
    schema: dict[str, Any]
    digest: str
    problem: str = ""

    def stored(self) -> dict[str, Any]:
        return asdict(self)


def read(stored: Iterable[dict[str, Any]]) -> list[Definition]:
    return [Definition(**each) for each in stored]


def mended(tool: object) -> dict[str, Any] | None:
    """One entry of a listing as the protocol wants it, with what matters of it, so that one that is wrong does not
    cost the others (case MCP-03). None: it has no name."""
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
        return None
    kept: dict[str, Any] = {"name": tool["name"]}
    kept |= {key: tool[key] for key in ("title", "description") if isinstance(tool.get(key), str)}
    schema = tool.get("inputSchema")
    if isinstance(schema, dict) and schema.get("type", "object") == "object":
        kept["inputSchema"] = {**schema, "type": "object"}
    else:
        kept["inputSchema"] = {"type": "object", BROKEN: clip(clean(str(schema)), 200)}
    return kept


def defined(server: str, tools: Sequence[dict[str, Any]]) -> list[Definition]:
    """Definitions from the entries of a listing, in its order."""
    made: list[Definition] = []
    named = Counter(tool["name"] for tool in tools)
    room, parts = MOST_KEPT, Parts(MOST_PARTS)
    for tool in tools:
        each = _defined(server, tool, parts)
        problem, size = each.problem, len(dumps(each.schema))
        if not problem and named[tool["name"]] > 1:  # a call would be of either
            problem = "Another tool of this server has the same name."
        elif not problem and size > room:
            problem = f"The server describes more tools than are kept ({MOST_KEPT:,} bytes)."
        if problem:
            made.append(Definition(each.name, each.offered, each.description, {}, each.digest, problem))
            continue
        room -= size
        made.append(each)
    return made


def too_many(chosen: Sequence[Definition]) -> str:
    """Why agents cannot have so many tools of one server (case MCP-03), for people; empty when they can."""
    if len(chosen) > MOST_TOOLS:
        over = len(chosen) - MOST_TOOLS
        return f"Agents can have {MOST_TOOLS} tools of one server. You chose {len(chosen)}: take {over} away."
    size = sum(len(dumps(each.schema)) for each in chosen)
    if size > MOST_SCHEMAS:
        return (
            f"The descriptions of these tools take {size:,} bytes; models can be given {MOST_SCHEMAS:,} of one server. "
            "Choose fewer."
        )
    return ""


def first_fitting(seen: Iterable[Definition]) -> list[Definition]:
    """Of what can be used, as many as agents can have, in the server's order."""
    chosen: list[Definition] = []
    room = MOST_SCHEMAS
    for each in seen:
        size = len(dumps(each.schema))
        if not each.problem and size <= room and len(chosen) < MOST_TOOLS:
            chosen.append(each)
            room -= size
    return chosen


def digest_of(tool: dict[str, Any]) -> str:
    """The fingerprint of everything that a server says of a tool (threat T11)."""
    return sha256(dumps(tool, sort_keys=True)).hexdigest()


def _defined(server: str, tool: dict[str, Any], parts: Parts) -> Definition:
    """parts: that may still be made of schemas of the same listing."""
    name, schema = clean(tool["name"]), tool["inputSchema"]
    digest = digest_of(tool)
    said = legible(clean(tool.get("description") or tool.get("title") or ""))
    description = clip(said.strip(), LONGEST_DESCRIPTION)
    offered = offered_as(server, name)
    if len(name) > 200:
        return Definition(clip(name, 200), offered, description, {}, digest, "Its name is too long.")
    if legible(name) != tool["name"]:
        return Definition(name, offered, description, {}, digest, "Its name has characters that nobody sees.")
    if BROKEN in schema:
        return Definition(name, offered, description, {}, digest, "Its arguments are not described by a JSON schema.")
    try:
        return Definition(name, offered, description, normalised(_legible(schema), parts), digest)
    except Unusable as problem:
        return Definition(name, offered, description, {}, digest, str(problem))


def _legible(value: Any) -> Any:
    """A schema whose words its user can read, all of them: models would obey others, too (threats T11, T17)."""
    match value:
        case str():
            return legible(clean(value))
        case dict():
            return {legible(clean(key)): _legible(item) for key, item in value.items()}
        case list():
            return [_legible(item) for item in value]
        case _:
            return value
