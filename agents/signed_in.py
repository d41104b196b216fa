"""The door of every page: only for people who are signed in."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from agents import shares


class SignedInRequest(HttpRequest):
    """A request behind `signed_in`."""

    user: User


type View[**P] = Callable[Concatenate[Any, P], HttpResponseBase]


def signed_in[**P](view: "Callable[Concatenate[SignedInRequest, P], HttpResponseBase]") -> View[P]:
    """Only for people who are signed in; private pages stay out of every cache."""
    return wraps(view)(never_cache(login_required(_shared(view))))


def _shared[**P](view: "Callable[Concatenate[SignedInRequest, P], HttpResponseBase]") -> View[P]:
    def within_share(request: Any, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not shares.requests.begin(request.user.pk):
            return HttpResponse(_("Too many requests at once."), status=429, headers={"Retry-After": "1"})
        try:
            return view(request, *args, **kwargs)
        finally:
            shares.requests.end(request.user.pk)

    return within_share
