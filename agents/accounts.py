"""Who may have an account, and what comes with one."""

from allauth.account.adapter import DefaultAccountAdapter
from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest

from agents import services, tokens
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
