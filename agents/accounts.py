"""Who may have an account, and what comes with one."""

import threading
from typing import Any

import structlog
from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context as allauth_context
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage
from django.http import HttpRequest, HttpResponse

from agents import known_browsers, services, throttle, tokens
from agents.callers import address_of
from agents.live.stream import notify

log = structlog.get_logger(__name__)


class AccountAdapter(DefaultAccountAdapter):
    """Sign-up is closed by default: whoever signs up spends the owner's money."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.WAYMARK_SIGNUP_OPEN)

    def save_user(self, request: HttpRequest, user: User, form: object, commit: bool = True) -> User:
        saved: User = super().save_user(request, user, form, commit=commit)
        if commit:
            services.assistant_of(saved)
        return saved

    def get_client_ip(self, request: HttpRequest) -> str:
        return address_of(request)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Pages and API count together."""
        if throttle.seconds_to_wait(request, credentials.get("email", "")):
            raise self.validation_error("too_many_login_attempts")

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        user = super().authenticate(request, **credentials)
        if user is not None:
            throttle.succeeded(request, credentials.get("email", ""))
        return user

    def post_login(self, request: HttpRequest, user: User, **details: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **details)
        known_browsers.remember(response, user.email)
        return response

    def set_password(self, user: User, password: str) -> None:
        """Every new password (changed or reset) ends the tokens of all devices and the pages of all other sessions."""
        super().set_password(user, password)
        tokens.revoke_all(user)
        notify(user.pk, "signed_out")

    def send_mail(self, template_prefix: str, email: str, context: dict[str, object]) -> None:
        """In a thread: how long it takes must not tell a stranger whether there is such an account."""
        if not settings.SENDS_MAIL:
            return
        request = allauth_context.request
        mail = self.render_mail(template_prefix, email, {"request": request, "email": email} | context)
        threading.Thread(target=_send, args=[mail], name="mail").start()

    def logout(self, request: HttpRequest) -> None:
        """The other tabs of this session learn of it at once."""
        user_id = request.user.pk
        super().logout(request)
        if user_id is not None:
            notify(user_id, "signed_out")


def _send(mail: EmailMessage) -> None:
    try:
        mail.send()
    except Exception:
        log.exception("mail not sent", subject=mail.subject)
