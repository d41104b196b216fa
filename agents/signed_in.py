"""The door of every page: only for people who are signed in."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache


class SignedInRequest(HttpRequest):
    """A request behind `signed_in`."""

    user: User


type View[**P] = Callable[Concatenate[Any, P], HttpResponse]


def signed_in[**P](view: "Callable[Concatenate[SignedInRequest, P], HttpResponse]") -> View[P]:
    """Only for people who are signed in; private pages stay out of every cache."""
    return wraps(view)(never_cache(login_required(view)))
