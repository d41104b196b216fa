"""Secrets at rest: encrypted with keys that are not in the database, and written but never shown again."""

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class Unreadable(ImproperlyConfigured):
    """No key fits a stored secret."""


def seal(secret: str) -> str:
    """Encrypt with the first of WAYMARK_FIELD_KEYS. An empty secret stays empty."""
    return _keys().encrypt(secret.encode()).decode() if secret else ""


def unseal(sealed: str) -> str:
    """Decrypt with whichever key fits.

    Raises:
        Unreadable: none of the keys fits.
        ImproperlyConfigured: there are none.
    """
    if not sealed:
        return ""
    try:
        return _keys().decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise Unreadable("WAYMARK_FIELD_KEYS holds no key for a stored secret.") from error


def opens(sealed: str) -> bool:
    """Whether one of the keys fits."""
    try:
        unseal(sealed)
    except ImproperlyConfigured:
        return False
    return True


def _keys() -> MultiFernet:
    if not settings.FIELD_KEYS:
        raise ImproperlyConfigured("WAYMARK_FIELD_KEYS is missing (Fernet keys, the first one encrypts).")
    return MultiFernet([Fernet(key) for key in settings.FIELD_KEYS])
