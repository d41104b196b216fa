"""Web push: what a browser is told through the push service of its maker (RFC 8030). It cannot read it, because the
payload is encrypted for the browser (RFC 8291), and takes it from nobody else, because it is signed (RFC 8292)."""

import base64
import hashlib
import json
import time
from collections.abc import Sequence
from email.utils import parseaddr
from typing import Final
from urllib.parse import urlsplit

import http_ece
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from py_vapid import Vapid02, VapidException
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.models import DeviceToken
from agents.providers.errors import retry_after
from agents.refusals import Refused
from goals.notice import Channel, Notice, NoticeKind, Receipt, ReceiptState
from goals.notice_words import counted, first_lines, link, page_of, title
from goals.push_device import PushDevice
from goals.sending import Outcome
from memory.secrets import Unreadable, seal, unseal
from memory.text import clip, visible
from tools.cancel import CancelToken
from tools.safe_fetch import FetchFailed, FetchRefused, FetchUnsent, parsed, place_of, private_places, safe_fetch

MOST: Final = 20
"""Devices of one user."""
TITLE_LENGTH: Final = 150
DAY: Final = 24 * 3600
VALID: Final = 12 * 3600
"""Seconds; the push services allow a day."""
DELIVERED: Final = frozenset({200, 201, 202, 204})
GONE: Final = frozenset({404, 410})


class Keys(BaseModel):
    """In URL-safe base64. p256dh: the browser's public key. auth: its secret."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    p256dh: str = Field(max_length=100)
    auth: str = Field(max_length=40)


class Subscription(BaseModel):
    """As a browser's `PushSubscription.toJSON()` has it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    endpoint: str = Field(max_length=1000)
    keys: Keys


class Payload(BaseModel):
    """All that is pushed. id: of the notice, or of the first of several; empty for a trial."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    title: str
    body: str
    url: str
    urgent: bool = Field(default=False, exclude=True)


def is_possible() -> bool:
    """Whether this server has a key to sign with."""
    return bool(settings.WAYMARK_VAPID_KEY)


def public_key() -> str:
    """By which browsers know this server; empty when it has none."""
    if not is_possible():
        return ""
    point = _vapid().public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return base64.urlsafe_b64encode(point).decode().rstrip("=")


def register(user: User, given: str, name: str, *, browser: str = "", token: DeviceToken | None = None) -> PushDevice:
    """Tell a browser of what comes about from now on. It has one user: whoever registers it last. One that is told
    already has renewed its subscription: it misses nothing, and is told nothing twice.

    Args:
        given: its subscription, as JSON.

    Raises:
        Refused: it is none, its address is none that may be opened (threat T9), or there are too many.
    """
    subscription = _checked(given)
    digest = _digest(subscription.endpoint)
    sealed = seal(subscription.model_dump_json())
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)  # for the count
        mine = PushDevice.objects.for_user(user)
        whose = Q(browser=browser) if browser else Q(token=token) if token else Q(digest=digest)
        known = mine.filter(whose).first() or mine.filter(digest=digest).first()
        if known is None and mine.count() >= MOST:
            lost = mine.lost().first()
            if lost is None:
                raise Refused("too_many", f"You have {MOST} devices. Remove one of them first.")
            lost.delete()
        device = known or PushDevice(user=user, created_at=timezone.now())
        PushDevice.objects.filter(digest=digest).exclude(pk=device.pk).delete()
        device.token, device.browser = token, browser
        device.name = clip(visible(name), PushDevice.NAME_LENGTH) or "Browser"
        device.digest, device.sealed = digest, sealed
        device.save()
        missed = Receipt.objects.filter(channel=Channel.PUSH, device=device.pk, state=ReceiptState.GONE)
        missed.update(state=ReceiptState.LATER, next_at=timezone.now())
    return device


def is_known(device: PushDevice, endpoint: str) -> bool:
    """Whether that is the address by which a device is reached."""
    return not device.is_lost and bytes(device.digest) == _digest(endpoint)


def lose(device: PushDevice) -> bool:
    """Its push service does not know its subscription any more. Its browser may have another one, so the row is kept
    until that is told. False: it was, meanwhile."""
    return bool(PushDevice.objects.filter(pk=device.pk, digest=device.digest).update(sealed=""))


def of_notices(notices: Sequence[Notice]) -> Payload:
    """One says itself what it is about. Of several it is told how many they are, and of the first few what they say."""
    several = len(notices) > 1
    return Payload(
        id=str(notices[0].pk),
        title=clip(counted(notices) if several else title(notices[0]), TITLE_LENGTH),
        body=first_lines(notices) if several else notices[0].said,
        url=page_of(notices) if several else link(notices[0]),
        urgent=any(notice.kind != NoticeKind.FINISHED for notice in notices),
    )


def send(device: PushDevice, payload: Payload) -> Outcome:
    """Hand a message to the device's push service, which keeps it for a day. Never raises for what that does."""
    if not is_possible():
        return Outcome(ReceiptState.FAILED, "This server has no key to sign with.")
    if device.is_lost:
        return Outcome(ReceiptState.GONE)
    try:
        to = Subscription.model_validate_json(unseal(device.sealed))
    except Unreadable as error:
        return Outcome(ReceiptState.FAILED, str(error))
    try:
        signed = _signed(to.endpoint)
    except VapidException as error:
        return Outcome(ReceiptState.FAILED, str(error))
    headers = {
        **signed,
        "TTL": str(DAY),
        "Urgency": "high" if payload.urgent else "normal",
        "Content-Encoding": "aes128gcm",
        "Content-Type": "application/octet-stream",
    }
    try:
        answer = safe_fetch(to.endpoint, CancelToken(), headers=headers, body=_encrypted(to.keys, payload))
    except FetchRefused as error:
        return Outcome(ReceiptState.REFUSED, str(error))
    except FetchUnsent as error:
        return Outcome(ReceiptState.LATER, str(error), is_down=True)
    except FetchFailed as error:
        return Outcome(ReceiptState.UNKNOWN, str(error), is_down=True)
    return _outcome(answer.status, retry_after(answer.headers) or 0)


def _outcome(status: int, pause: float) -> Outcome:
    if status in DELIVERED:
        return Outcome(ReceiptState.SENT)
    if status in GONE:
        return Outcome(ReceiptState.GONE, f"The push service answered {status}.")
    is_busy = status == 429 or status >= 500
    state = ReceiptState.LATER if is_busy else ReceiptState.REFUSED
    return Outcome(state, f"The push service answered {status}.", is_busy, pause)


def _digest(endpoint: str) -> bytes:
    return hashlib.sha256(endpoint.encode()).digest()


def _checked(given: str) -> Subscription:
    try:
        subscription = Subscription.model_validate_json(given)
        address = parsed(subscription.endpoint)
        _point(subscription.keys)
        secret = _decoded(subscription.keys.auth)
    except (ValidationError, ValueError, FetchRefused) as error:
        raise Refused("not_a_subscription", "This is no subscription of a browser.") from error
    inside = place_of(address) in private_places()
    if len(secret) != 16 or not (address.scheme == "https" or inside):
        raise Refused("not_a_subscription", "This is no subscription of a browser.")
    return subscription


def _encrypted(keys: Keys, payload: Payload) -> bytes:
    encrypted: bytes = http_ece.encrypt(
        json.dumps(payload.model_dump(), ensure_ascii=False).encode(),
        private_key=ec.generate_private_key(ec.SECP256R1()),
        dh=_point(keys),
        auth_secret=_decoded(keys.auth),
    )
    return encrypted


def _signed(endpoint: str) -> dict[str, str]:
    """Raises: VapidException: of an address in figures of version 6, which py_vapid does not know."""
    parts = urlsplit(endpoint)
    contact = f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}"
    claims = {"aud": f"{parts.scheme}://{parts.netloc}", "exp": int(time.time()) + VALID, "sub": contact}
    signed: dict[str, str] = _vapid().sign(claims)
    return signed


def _vapid() -> Vapid02:
    return Vapid02.from_raw(settings.WAYMARK_VAPID_KEY.encode())


def _point(keys: Keys) -> bytes:
    """Raises: ValueError: it is no point of the curve."""
    point = _decoded(keys.p256dh)
    ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point)
    return point


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
