"""JSON as it leaves this process: fast in the ordinary case, forgiving where orjson is not."""

import json
from collections.abc import Callable
from dataclasses import asdict, is_dataclass

import orjson

from memory.text import clean, clean_json


def dumps(value: object, *, sort_keys: bool = False, default: Callable[[object], object] | None = None) -> bytes:
    """Return `value` as UTF-8 JSON. What UTF-8 cannot hold becomes U+FFFD; numbers may be of any length.

    default: called for what JSON has no form of; instants have one (RFC 3339, in UTC with a Z).
    """
    option = orjson.OPT_UTC_Z | (orjson.OPT_SORT_KEYS if sort_keys else 0)
    try:
        return orjson.dumps(value, default=default, option=option)
    except TypeError:
        text = json.dumps(
            clean_json(value),
            ensure_ascii=False,
            allow_nan=False,
            separators=(",", ":"),
            sort_keys=sort_keys,
            default=lambda each: _plain(each, default),
        )
        return clean(text).encode()


def _plain(value: object, default: Callable[[object], object] | None) -> object:
    """What orjson alone knows is written as orjson does."""
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return orjson.loads(orjson.dumps(value, default=default, option=orjson.OPT_UTC_Z))
