"""Names and ids as vendors accept them. Each is the same on every call, so that the prefix of a history is as well."""

import functools
import hashlib
import re

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]+")


@functools.lru_cache(1_000)
def legal_name(name: str) -> str:
    """Return `name` as vendors accept it, ^[a-zA-Z0-9_-]{1,64}$; control tokens after it are cut (case PRV-09)."""
    bare = name.partition("<|")[0].strip().removeprefix("functions.")
    return _ILLEGAL.sub("_", bare)[:64] or "unnamed"


def legal_id(identity: str) -> str:
    """Return the id of a call as the strictest vendors accept it; others may have made it of any characters."""
    if not _ILLEGAL.search(identity):
        return identity
    return f"call_{hashlib.sha256(identity.encode(errors='replace')).hexdigest()[:24]}"
