"""What a test has shown of a connection that is not saved yet, kept in the session until it is."""

from contextlib import suppress
from dataclasses import asdict

from django.contrib.sessions.backends.base import UpdateError
from django.utils.crypto import salted_hmac

from agents.connecting import Given
from agents.providers.base import Verdict
from agents.signed_in import SignedInRequest

_PLACE = "tested"


def remember(request: SignedInRequest, kind: str, given: Given, verdict: Verdict) -> None:
    """Keep a verdict, which may come when the session has changed since or is gone."""
    now = type(request.session)(request.session.session_key)
    now[_PLACE] = {"of": _mark(kind, given), "verdict": asdict(verdict)}
    with suppress(UpdateError):
        now.save()


def recall(request: SignedInRequest, kind: str, given: Given) -> Verdict | None:
    """The verdict on just this connection, if it was the last that was tested."""
    kept = request.session.get(_PLACE, {})
    return Verdict(**kept["verdict"]) if kept.get("of") == _mark(kind, given) else None


def _mark(kind: str, given: Given) -> str:
    """Tells connections apart without saying their keys."""
    parts = (kind, given.base_url, given.model, given.api_key)
    return salted_hmac("goals.tested", "\n".join(parts), algorithm="sha256").hexdigest()
