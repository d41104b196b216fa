"""Reading JSON as vendors write it: fast in the ordinary case, forgiving where orjson is not."""

import json
import math
from typing import cast

import orjson
from pydantic import JsonValue


def loads(data: bytes | str) -> JsonValue:
    """Parse JSON. Halves of surrogate pairs are let through: they may be joined with their other half later.

    Raises:
        ValueError: not JSON, or a number that JSON cannot hold (NaN, Infinity, 1e400).
    """
    try:
        return cast(JsonValue, orjson.loads(data))
    except orjson.JSONDecodeError:
        return _loads_leniently(data)


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
