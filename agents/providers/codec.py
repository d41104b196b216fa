"""Reading JSON as vendors write it: fast in the ordinary case, forgiving where orjson is not."""

import json
import math
import re
from typing import cast

import orjson
from pydantic import JsonValue

# The shortest whole number that does not fit into 64 bits.
_LONG = re.compile(r"\d{19}")
_LONG_BYTES = re.compile(rb"\d{19}")


def loads(data: bytes | str) -> JsonValue:
    """Parse JSON. Halves of surrogate pairs are let through: they may be joined with their other half later.

    Raises:
        ValueError: not JSON, or a number that JSON cannot hold (NaN, Infinity, 1e400).
    """
    try:
        return cast(JsonValue, orjson.loads(data))
    except orjson.JSONDecodeError:
        return _loads_leniently(data)


def loads_exactly(data: bytes | str) -> JsonValue:
    """As `loads`, but whole numbers of any length stay what they are, where orjson makes them the nearest float."""
    found = _LONG.search(data) if isinstance(data, str) else _LONG_BYTES.search(data)
    return _loads_leniently(data) if found else loads(data)


def _loads_leniently(data: bytes | str) -> JsonValue:
    try:
        return cast(JsonValue, json.loads(data, parse_constant=_refuse, parse_float=_finite))
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"number out of range: {number}")
    return value


def _refuse(constant: str) -> float:
    raise ValueError(f"not JSON: {constant}")
