"""A browser that is signed out is told nothing any more."""

from django.contrib.auth.models import User
from django.http import HttpRequest

from goals.looks import device_of
from goals.push_device import PushDevice


def signed_out(sender: object, request: HttpRequest, user: User | None, **_: object) -> None:
    if user is not None:
        PushDevice.objects.for_user(user).filter(browser=device_of(request)).delete()


def new_password(sender: object, user: User, **_: object) -> None:
    """Every new password signs all other browsers out."""
    PushDevice.objects.for_user(user).delete()
