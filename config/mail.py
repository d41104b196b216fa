"""How mail leaves, for Django's MAILERS."""

from typing import Any

SEND_SECONDS = 15
SMTP = "django.core.mail.backends.smtp.EmailBackend"


def mailer(url: dict[str, Any]) -> dict[str, Any]:
    """One entry of MAILERS.

    Args:
        url: what django-environ made of an address such as smtp+tls://user:password@host:587.
    """
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
