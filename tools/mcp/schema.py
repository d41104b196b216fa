"""The schema of a foreign tool, as every vendor takes it (case MCP-03).

What a vendor does not understand is left out: the server checks the arguments itself. What cannot be made to fit costs
this one tool, with a reason for people, and never a run.
"""

import re
from typing import Any, Final

from memory.encoding import dumps

LONGEST: Final = 20_000
"""Of a schema as JSON, in bytes."""
DEEPEST: Final = 12
"""Of parts within parts, and of references that are followed on the way to one."""
MOST_PARTS: Final = 20_000
"""Of all schemas of one listing together."""
MOST_OF_ONE: Final = 2_000
KEPT: Final = frozenset(
    {
        *("type", "description", "enum", "const", "default", "format", "required", "title"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"),
    }
)
PROPERTY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
TYPES: Final = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


class Unusable(Exception):
    """No vendor would take it. The message says why, for people."""


class Parts:
    """How many parts may still be made of one listing: references multiply, and each tool may have its own."""

    def __init__(self, left: int) -> None:
        self._left = left

    def take(self) -> None:
        """Raises: Unusable."""
        if not self._left:
            raise Unusable("The server describes its tools at greater length than is read.")
        self._left -= 1


def normalised(schema: object, parts: Parts) -> dict[str, Any]:
    """Return an object schema without references, in which every part has a type or alternatives.

    Args:
        parts: that may still be made.

    Raises:
        Unusable: it is no schema of an object, or too large.
    """
    if not isinstance(schema, dict):
        raise Unusable("Its arguments are not described by a JSON schema.")
    if len(dumps(schema)) > LONGEST * 4:
        raise Unusable("The description of its arguments is too long.")
    made = _Maker(schema, parts).part(_flat(schema), 0, ())
    if made.get("type", "object") != "object":
        raise Unusable("Its arguments are no JSON object.")
    made["type"] = "object"
    made.setdefault("properties", {})
    if len(dumps(made)) > LONGEST:
        raise Unusable("The description of its arguments is too long.")
    return made


def _flat(schema: dict[str, Any]) -> dict[str, Any]:
    """Alternatives at the top, which vendors refuse there, become one object of all their properties."""
    alternatives = [each for key in ("anyOf", "oneOf", "allOf") for each in _list(schema.get(key))]
    if not alternatives:
        return schema
    flat = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf", "allOf")}
    properties: dict[str, Any] = {}
    for each in alternatives:
        if isinstance(each, dict) and isinstance(each.get("properties"), dict):
            properties |= each["properties"]
    flat["properties"] = properties | (flat["properties"] if isinstance(flat.get("properties"), dict) else {})
    return flat


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


class _Maker:
    """Makes the parts of one schema."""

    def __init__(self, whole: dict[str, Any], parts: Parts) -> None:
        self._whole = whole
        self._parts = parts
        self._left = MOST_OF_ONE
        self._resolved: dict[str, dict[str, Any]] = {}

    def part(self, schema: object, depth: int, within: tuple[str, ...]) -> dict[str, Any]:
        """within: the references that are being followed; one that leads back to itself takes anything."""
        self._parts.take()
        self._left -= 1
        if self._left < 0:
            raise Unusable("The description of its arguments is too long.")
        if depth > DEEPEST or len(within) > DEEPEST:
            return {"type": "object"}
        if not isinstance(schema, dict):
            return {"type": "string"}
        reference = schema.get("$ref")
        if reference is not None:
            if not isinstance(reference, str) or reference in within:
                return {"type": "object"}
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return self.part({**self._found(reference), **beside}, depth, (*within, reference))
        made = {key: value for key, value in schema.items() if key in KEPT and _fits(key, value)}
        self._type(made, schema, depth, within)
        self._inside(made, schema, depth, within)
        return made

    def _found(self, reference: str) -> dict[str, Any]:
        if reference not in self._resolved:
            self._resolved[reference] = self._looked_up(reference)
        return self._resolved[reference]

    def _looked_up(self, reference: str) -> dict[str, Any]:
        if not reference.startswith("#"):
            raise Unusable("It refers to a schema that is elsewhere.")
        found: Any = self._whole
        for step in reference[1:].strip("/").split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if name and (not isinstance(found, dict) or name not in found):
                raise Unusable("It refers to a schema that is not there.")
            found = found[name] if name else found
        return found if isinstance(found, dict) else {}

    def _type(self, made: dict[str, Any], schema: dict[str, Any], depth: int, within: tuple[str, ...]) -> None:
        """One type, or alternatives of one each: not every vendor takes a list of types."""
        kinds = schema.get("type")
        alternatives = [each for key in ("anyOf", "oneOf") for each in _list(schema.get(key))]
        if isinstance(kinds, list):
            made.pop("type", None)
            known = [kind for kind in kinds if isinstance(kind, str) and kind in TYPES]
            rest = {key: schema[key] for key in ("items", "properties", "required") if key in schema}
            alternatives = [{"type": kind} | (rest if kind in ("array", "object") else {}) for kind in known]
        if depth and alternatives:
            parts = [self.part(each, depth + 1, within) for each in alternatives[:20]]
            made.pop("type", None)
            if len(parts) == 1:
                made |= {key: value for key, value in parts[0].items() if key not in made}
            else:
                made["anyOf"] = parts
        for each in _list(schema.get("allOf")) if depth else ():
            made |= {key: value for key, value in self.part(each, depth + 1, within).items() if key not in made}
        if "type" not in made and "anyOf" not in made:
            made["type"] = _guessed(schema, depth)

    def _inside(self, made: dict[str, Any], schema: dict[str, Any], depth: int, within: tuple[str, ...]) -> None:
        if made.get("type") == "array":
            made["items"] = self.part(schema.get("items"), depth + 1, within)
        if made.get("type") == "object" and isinstance(schema.get("properties"), dict):
            parts = schema["properties"].items()
            if not all(isinstance(name, str) and PROPERTY.fullmatch(name) for name, _ in parts):
                raise Unusable("One of its arguments has a name that not every model takes.")
            made["properties"] = {str(name): self.part(part, depth + 1, within) for name, part in parts}
        if "required" in made:
            there = made.get("properties", {})
            made["required"] = [name for name in made["required"] if name in there]


def _fits(key: str, value: object) -> bool:
    if key == "type":
        return isinstance(value, str) and value in TYPES
    if key in ("enum", "required"):
        return isinstance(value, list) and bool(value) and (key == "enum" or all(isinstance(n, str) for n in value))
    if key in ("description", "title", "format", "pattern"):
        return isinstance(value, str)
    if key in ("const", "default"):
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)


def _guessed(schema: dict[str, Any], depth: int) -> str:
    if "properties" in schema or depth == 0:
        return "object"
    if "items" in schema:
        return "array"
    values = _list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    for kind, of in (("boolean", bool), ("integer", int), ("number", float)):
        if values and all(isinstance(value, of) for value in values):
            return kind
    return "string"
