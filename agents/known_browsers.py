"""Browsers that have signed somebody in before: nobody else's tries keep them out."""

import secrets

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.crypto import salted_hmac

COOKIE = "waymark_browser"
KEPT_SECONDS = 365 * 24 * 3600


def remember(response: HttpResponseBase, email: str) -> None:
    """Have this browser show from now on that it signed `email` in."""
    response.set_signed_cookie(
        COOKIE,
        f"{secrets.token_hex(8)}.{_mark(email)}",
        max_age=KEPT_SECONDS,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def name_of(request: HttpRequest, email: str) -> str:
    """The name of this browser if it has signed `email` in before, else ""."""
    name, _, mark = (request.get_signed_cookie(COOKIE, default="", max_age=KEPT_SECONDS) or "").partition(".")
    return name if name and mark == _mark(email) else ""


def _mark(email: str) -> str:
    return salted_hmac(COOKIE, email.strip().casefold(), algorithm="sha256").hexdigest()[:32]
