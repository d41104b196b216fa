"""The routing of a connection, as it is stored and as it is used."""

from collections.abc import Mapping
from dataclasses import asdict

from pydantic import TypeAdapter, ValidationError

from agents.providers.base import Routing

_ROUTING = TypeAdapter(Routing)


def routing_of(stored: Mapping[str, object]) -> Routing:
    """What a column says; nothing when it is not understood."""
    try:
        return _ROUTING.validate_python(dict(stored))
    except ValidationError:
        return Routing()


def stored(routing: Routing) -> dict[str, object]:
    """What stands in the column: only what says something."""
    fields = asdict(routing) | {"order": list(routing.order)}
    return {name: value for name, value in fields.items() if value}
