"""The owner's account at the first start."""

from collections.abc import Mapping

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.contrib.auth.password_validation import validate_password
from django.db import transaction

from config import setup_link


def ensure_owner(environment: Mapping[str, str]) -> User | None:
    """The owner: the oldest superuser, or the one that WAYMARK_OWNER_EMAIL and WAYMARK_OWNER_PASSWORD describe, made
    now when nobody has an account yet. None when there is neither.

    Raises:
        ValidationError: the password is too weak.
    """
    if User.objects.exists():
        return User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    email, password = environment.get("WAYMARK_OWNER_EMAIL", ""), environment.get("WAYMARK_OWNER_PASSWORD", "")
    if not email or not password:
        return None
    return create_owner(email, password)


@transaction.atomic
def create_owner(email: str, password: str) -> User:
    """Make a superuser who signs in by that e-mail address, which counts as verified."""
    email = email.strip().lower()
    validate_password(password, User(username=email, email=email))
    user = User.objects.create_superuser(username=email[:150], email=email, password=password)
    EmailAddress.objects.create(user=user, email=email, primary=True, verified=True)
    return user


def how_to_sign_in(owner: User | None, base_url: str) -> str:
    """One line for the console."""
    if owner is not None:
        return f"{base_url} as {owner.email or owner.username}"
    if User.objects.exists():
        return base_url
    return f"{setup_link.make(base_url)}  (once, makes your account)"
