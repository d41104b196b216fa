"""How mail leaves, for Django's MAILERS."""

from email.utils import parseaddr
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

SEND_SECONDS = 15
SMTP = "django.core.mail.backends.smtp.EmailBackend"


def mailer(address: str) -> dict[str, Any]:
    """One entry of MAILERS.

    Args:
        address: such as smtp+tls://user:password@host:587. Of smtps:// nobody knows which kind of TLS is meant.

    Raises:
        ImproperlyConfigured: it is none. It is not repeated: it may hold a password.
    """
    try:
        url = environ.Env.email_url_config(address)
    except (ValueError, ImproperlyConfigured):  # of the port, of the scheme
        url = {}
    if not url or address.startswith("smtps:") or (url["EMAIL_BACKEND"] == SMTP and not url["EMAIL_HOST"]):
        raise ImproperlyConfigured(
            "WAYMARK_EMAIL_URL is smtp+tls://USER:PASSWORD@HOST:587, smtp+ssl://USER:PASSWORD@HOST:465 or smtp://HOST."
        )
    backend: str = url["EMAIL_BACKEND"]
    if backend != SMTP:
        folder = url["EMAIL_FILE_PATH"]
        return {"BACKEND": backend, "OPTIONS": {"file_path": f"/{folder}"} if folder else {}}
    options = {
        "host": url["EMAIL_HOST"],
        "port": url["EMAIL_PORT"],
        "username": url["EMAIL_HOST_USER"] or "",
        "password": url["EMAIL_HOST_PASSWORD"] or "",
        "use_tls": url.get("EMAIL_USE_TLS", False),
        "use_ssl": url.get("EMAIL_USE_SSL", False),
        "timeout": SEND_SECONDS,
    }
    return {"BACKEND": backend, "OPTIONS": options}


def sender(address: str) -> str:
    """Whom mail is from.

    Raises:
        ImproperlyConfigured: nobody could answer.
    """
    if "@" not in parseaddr(address)[1]:
        raise ImproperlyConfigured("WAYMARK_EMAIL_FROM is no address, such as Waymark <waymark@example.org>.")
    return address
