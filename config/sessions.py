"""Sessions of browsers, kept in the database."""

import re
from typing import Any

from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore

_KEY = re.compile(r"[0-9a-z]{32}")


class SessionStore(DatabaseSessionStore):
    """A key that no session can have never reaches the database, which refuses some of them (NUL) by an error."""

    def _validate_session_key(self, key: Any) -> bool:
        return bool(key) and _KEY.fullmatch(key) is not None
