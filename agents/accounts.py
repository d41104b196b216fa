"""Who may have an account, and what comes with one."""

from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse

from agents import known_browsers, services, throttle, tokens
from agents.callers import address_of
from agents.live.stream import notify


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

    def logout(self, request: HttpRequest) -> None:
        """The other tabs of this session learn of it at once."""
        user_id = request.user.pk
        super().logout(request)
        if user_id is not None:
            notify(user_id, "signed_out")
