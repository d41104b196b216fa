"""Tokens of devices: made once, shown once, kept only as a digest."""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import connection
from django.db.models import Q
from django.db.models.functions import Now

from agents.models import DeviceToken

PREFIX = "wm_"
BYTES = 32
TOUCH_EVERY = timedelta(minutes=1)

# Every request of a device asks this, so it is written out: building the same query by the ORM costs a millisecond.
_DEVICE = [field.attname for field in DeviceToken._meta.concrete_fields]
_USER = [field.attname for field in User._meta.concrete_fields]
_FIND = (
    f"SELECT {', '.join(f'd.{name}' for name in _DEVICE)}, {', '.join(f'u.{name}' for name in _USER)} "  # noqa: S608
    f"FROM {DeviceToken._meta.db_table} d JOIN {User._meta.db_table} u ON u.id = d.user_id "
    "WHERE d.digest = %s AND u.is_active"
)


def issue(user: User, name: str = "") -> str:
    """Make a token for a device of `user` and return it; it cannot be read again later."""
    token = PREFIX + secrets.token_urlsafe(BYTES)
    DeviceToken.objects.create(user=user, name=name[:100], digest=digest(token))
    return token


def digest(token: str) -> bytes:
    """A token has 256 random bits, so a plain hash cannot be searched and needs no salt."""
    return hashlib.sha256(token.encode()).digest()


def find(token: str) -> DeviceToken | None:
    """Return the device of a token with its user loaded: one indexed query. None: unknown, revoked or inactive."""
    if not token.startswith(PREFIX):
        return None
    with connection.cursor() as cursor:
        cursor.execute(_FIND, [digest(token)])
        row = cursor.fetchone()
    if row is None:
        return None
    device = DeviceToken.from_db(connection.alias, _DEVICE, row[: len(_DEVICE)])
    device.user = User.from_db(connection.alias, _USER, row[len(_DEVICE) :])
    return device


def touch(device: DeviceToken) -> None:
    """Note that a device was used, at most once a minute, so that reading does not become writing."""
    stale = Q(last_used_at=None) | Q(last_used_at__lt=Now() - TOUCH_EVERY)
    DeviceToken.objects.filter(stale, pk=device.pk).update(last_used_at=Now())


def revoke(device: DeviceToken) -> None:
    device.delete()


def revoke_all(user: User) -> int:
    """Sign out every device of `user`, as a new password must; return how many there were."""
    count, _ = DeviceToken.objects.for_user(user).delete()
    return count
