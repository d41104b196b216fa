"""Whose an address is. Where anybody may sign up, they may do so with the address of somebody else, so notices go there
only once whoever reads its mails has said so (threat T16)."""

from datetime import timedelta
from typing import Final

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from goals import notice_mail
from goals.notice import NoticeChoice, ReceiptState

SALT: Final = "address of notices"
HOLDS: Final = timedelta(days=3)
AGAIN: Final = timedelta(days=1)
"""Between two mails that ask: they go to somebody who may never have heard of us."""


def is_proven(user: User) -> bool:
    """Whether notices may go to a user's address."""
    if not settings.WAYMARK_SIGNUP_OPEN or user.is_staff:
        return True
    return bool(EmailAddress.objects.filter(user=user, email__iexact=user.email, verified=True).exists())


def ask(user: User) -> str:
    """Mail a link that proves the address. Returns why that was not done, as a sentence; empty when it was."""
    if not settings.SENDS_MAIL or not user.email:
        return _("There is no address, or this server sends no mail.")
    now = timezone.now()
    NoticeChoice.objects.get_or_create(user=user)
    due = NoticeChoice.objects.filter(Q(proof_asked_at=None) | Q(proof_asked_at__lt=now - AGAIN), user=user)
    if not due.update(proof_asked_at=now):
        return _("The mail has been sent already. Look into your mails, or try again tomorrow.")
    token = signing.dumps([user.pk, user.email], salt=SALT)
    page = {"url": f"{settings.WAYMARK_SITE}{reverse('mail_proof', args=[token])}", "site": settings.WAYMARK_SITE}
    letter = EmailMessage(
        _("Is this your address?"),
        render_to_string("goals/email/proof.txt", page),
        to=[user.email],
        headers={"Auto-Submitted": "auto-generated"},
    )
    outcome = notice_mail.deliver(letter)
    if outcome.state == ReceiptState.SENT:
        return ""
    if outcome.state == ReceiptState.LATER:
        NoticeChoice.objects.filter(user=user).update(proof_asked_at=None)
    return outcome.detail


def user_of(token: str) -> User | None:
    """The user whose address a link proves; None: it is none, too old, or the address is another one now."""
    try:
        pk, email = signing.loads(token, salt=SALT, max_age=HOLDS)
    except (signing.BadSignature, ValueError):
        return None
    return User.objects.filter(pk=pk, email=email, is_active=True).first()


def prove(user: User) -> None:
    """Notices may go to the address from now on. Rows of addresses that it was before stay, as such."""
    with transaction.atomic():
        mine = EmailAddress.objects.filter(user=user)
        mine.exclude(email__iexact=user.email).update(primary=False)
        row = mine.filter(email__iexact=user.email).first() or EmailAddress(user=user, email=user.email)
        row.verified = row.primary = True
        row.save()
