"""Since you last looked: a cursor for each user and device (mission H11)."""

import re
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils.translation import ngettext

from goals.look import Look
from goals.updates import Kind, Update, horizon

SITTING: Final = timedelta(minutes=30)
"""Whoever comes back within it has not been away: what was new then still is."""
OLDEST: Final = timedelta(days=366)
"""Nothing older is new."""
FIRST: Final = timedelta(days=1)
"""What a device is shown that has never looked."""
MOST: Final = 50
"""Devices of one user whose place is kept."""
COOKIE: Final = "waymark_device"
NAME: Final = re.compile(r"[0-9a-f]{32}")
YEAR: Final = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class Count:
    """How much there is of a kind, in words."""

    kind: Kind
    words: str


def device_of(request: HttpRequest) -> str:
    """This browser's name; a new one gets one, which `remember` hands to it."""
    name = request.COOKIES.get(COOKIE, "")
    return name if NAME.fullmatch(name) else secrets.token_hex(16)


def remember(response: HttpResponse, device: str) -> None:
    secure = settings.SESSION_COOKIE_SECURE
    response.set_cookie(COOKIE, device, max_age=YEAR, secure=secure, httponly=True, samesite="Lax")


def look(user: User, device: str) -> datetime:
    """The user looks at what is new. Returns since when that is: since they last did, or since this sitting began."""
    now = horizon()
    mine, made = Look.objects.get_or_create(
        user=user, device=device, defaults={"since": _first(user, now), "seen": now}
    )
    if made:
        _forget_others(user)
        return mine.since
    if now - mine.seen > SITTING:
        mine.since = mine.seen
    mine.seen = max(now, mine.seen)
    mine.save(update_fields=["since", "seen"])
    return mine.since


def since(user: User, device: str) -> datetime:
    """Since when things are new, without a look."""
    mine = Look.objects.for_user(user).filter(device=device).first()
    return mine.since if mine else _first(user, horizon())


def _first(user: User, now: datetime) -> datetime:
    """Where a device begins that has never looked: not before its user was here."""
    return max(now - FIRST, user.date_joined)


def seen(user: User, device: str, until: datetime) -> None:
    """A device has shown all until a moment; what is new begins there. An earlier one than before changes nothing."""
    until = within_reach(until)
    mine, made = Look.objects.get_or_create(user=user, device=device, defaults={"since": until, "seen": until})
    if not made and until > mine.seen:
        Look.objects.filter(pk=mine.pk).update(since=until, seen=until)


def _forget_others(user: User) -> None:
    """Browsers that keep no cookies are new each time."""
    kept = Look.objects.for_user(user).order_by("-seen").values("pk")[:MOST]
    Look.objects.for_user(user).exclude(pk__in=kept).delete()


def within_reach(moment: datetime) -> datetime:
    """The moment itself, or the next one to it that makes sense: neither ahead nor older than OLDEST."""
    now = horizon()
    return min(max(moment, now - OLDEST), now)


def by_place(news: Sequence[Update]) -> Mapping[UUID, Sequence[Update]]:
    """The updates of each conversation, in their order."""
    found: dict[UUID, list[Update]] = {}
    for update in news:
        found.setdefault(update.thread, []).append(update)
    return found


def counts(news: Sequence[Update]) -> list[Count]:
    """How much there is of what an answer does not say itself."""
    numbers = Counter(update.kind for update in news)
    return [Count(kind, _words(kind, numbers[kind])) for kind in Kind if numbers[kind] and kind != Kind.ANSWER]


def _words(kind: Kind, n: int) -> str:
    words = {
        Kind.ASKED: ngettext("%(n)d waits for you", "%(n)d wait for you", n),
        Kind.DECIDED: ngettext("%(n)d decision", "%(n)d decisions", n),
        Kind.FAILURE: ngettext("%(n)d failure", "%(n)d failures", n),
        Kind.ANSWER: ngettext("%(n)d answer", "%(n)d answers", n),
        Kind.REPORT: ngettext("%(n)d report", "%(n)d reports", n),
        Kind.CHANGE: ngettext("%(n)d change", "%(n)d changes", n),
    }
    return words[kind] % {"n": n}
