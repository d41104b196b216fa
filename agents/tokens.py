"""Tokens of devices: made once, shown once, kept only as a digest."""

import hashlib
import secrets
from datetime import timedelta

from django.contrib.auth.models import User
from django.db.models import Q
from django.db.models.functions import Now
from django.dispatch import Signal

from agents.models import DeviceToken
from memory.hot import columns, load_joined

PREFIX = "wm_"
BYTES = 32
TOUCH_EVERY = timedelta(minutes=1)

all_revoked = Signal()
"""Sent with the `user` whose devices were all signed out: they have a new password, whoever has set it."""

# Every request of a device asks this, so it is a prepared statement: the same query by the ORM costs a millisecond.
_FIND = (
    f"SELECT {columns(DeviceToken, 'd')}, {columns(User, 'u')} "  # noqa: S608
    f"FROM {DeviceToken._meta.db_table} d JOIN {User._meta.db_table} u ON u.id = d.user_id "
    "WHERE d.digest = %(digest)s AND u.is_active"
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
    found = load_joined(_FIND, {"digest": digest(token)}, DeviceToken, User)
    if not found:
        return None
    device, user = found
    assert isinstance(device, DeviceToken)
    device.user = user
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
    all_revoked.send(User, user=user)
    return count
