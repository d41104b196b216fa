"""Notices by mail."""

import smtplib
from collections.abc import Sequence
from contextlib import suppress

from django.conf import settings
from django.contrib.auth.models import User
from django.core import signing
from django.core.mail import EmailMessage, EmailMultiAlternatives, mailers
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import gettext as _, ngettext

from goals.notice import Notice, ReceiptState
from goals.notice_words import link, title
from goals.sending import Outcome
from memory.text import clip
from tools.seen import ADDRESS

SALT = "notices by mail"


def send(user: User, notices: Sequence[Notice]) -> Outcome:
    """Send one mail that tells of all of them."""
    return deliver(_letter(user, notices))


def deliver(letter: EmailMessage) -> Outcome:
    """Hand a mail over. Never raises for what a mail server does."""
    connection = mailers.default
    try:
        connection.open()
    except OSError as error:  # smtplib's are, too
        return Outcome(ReceiptState.LATER, str(error), is_down=True)
    try:
        connection.send_messages([letter])
    except smtplib.SMTPNotSupportedError as error:
        return Outcome(ReceiptState.REFUSED, str(error))
    except smtplib.SMTPRecipientsRefused as refused:
        return _refused(*next(iter(refused.recipients.values())))
    except smtplib.SMTPResponseException as refused:
        return _refused(refused.smtp_code, refused.smtp_error)
    except ValueError as error:
        return Outcome(ReceiptState.REFUSED, str(error))
    except OSError as error:
        return Outcome(ReceiptState.UNKNOWN, str(error), is_down=True)
    finally:
        with suppress(OSError):
            connection.close()
    return Outcome(ReceiptState.SENT)


def user_of(token: str) -> int | None:
    """The id of the user to whom a link to switch mails off was sent; None: nobody was."""
    try:
        user_id: int = signing.loads(token, salt=SALT)
    except signing.BadSignature:
        return None
    return user_id


def _refused(code: int, said: bytes | str) -> Outcome:
    words = said.decode(errors="replace") if isinstance(said, bytes) else said
    return Outcome(ReceiptState.LATER if 400 <= code < 500 else ReceiptState.REFUSED, f"{code} {words}")


def _said(notice: Notice) -> str:
    """Mail programs turn every address into a link that seems to come from us, so what a stranger may have put there is
    left out (threat T10)."""
    return ADDRESS.sub(_("[address left out]"), notice.said) if notice.thread.sources else notice.said


def _letter(user: User, notices: Sequence[Notice]) -> EmailMultiAlternatives:
    lines = [
        {
            "title": title(each),
            "said": _said(each),
            "sources": each.thread.sources,
            "url": f"{settings.WAYMARK_SITE}{link(each)}",
        }
        for each in notices
    ]
    off = f"{settings.WAYMARK_SITE}{reverse('mail_off', args=[signing.dumps(user.pk, salt=SALT)])}"
    page = {
        "lines": lines,
        "off": off,
        "settings": f"{settings.WAYMARK_SITE}{reverse('settings_notices')}",
        "site": settings.WAYMARK_SITE,
    }
    more = len(lines) - 1
    subject = clip(lines[0]["title"], 120)
    if more:
        subject += " " + ngettext("and %(n)d more", "and %(n)d more", more) % {"n": more}
    letter = EmailMultiAlternatives(
        subject,
        render_to_string("goals/email/notices.txt", page),
        to=[user.email],
        headers={
            "List-Unsubscribe": f"<{off}>",
            "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
            "Auto-Submitted": "auto-generated",
        },
    )
    letter.attach_alternative(render_to_string("goals/email/notices.html", page), "text/html")
    return letter
