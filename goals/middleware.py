"""What comes before every page."""

import zoneinfo
from collections.abc import Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from agents.services import assistant_of
from goals.glances import looked


class PageMiddleware:
    """Does something before a page is drawn for somebody. Pages are drawn by sync views; an async view (the event
    stream) sends instants and needs nothing of that."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., object], args: object, kwargs: object) -> None:
        if not iscoroutinefunction(view) and not _is_no_page(request) and request.user.is_authenticated:
            self.before_page(request, request.user)

    def before_page(self, request: HttpRequest, user: User) -> None:
        raise NotImplementedError


class UserTimeZoneMiddleware(PageMiddleware):
    """Times are shown in the user's own zone."""

    def process_view(self, request: HttpRequest, view: Callable[..., object], args: object, kwargs: object) -> None:
        timezone.deactivate()
        super().process_view(request, view, args, kwargs)

    def before_page(self, request: HttpRequest, user: User) -> None:
        timezone.activate(zoneinfo.ZoneInfo(assistant_of(user).time_zone))


class GlanceMiddleware(PageMiddleware):
    """Notes what its user looks at (mission H10). A part that brings itself up to date is not looked at for that, nor a
    page that a browser loads because they may open it: when they do, it says so itself (`static/js/7-notices.js`)."""

    def before_page(self, request: HttpRequest, user: User) -> None:
        by_itself = request.headers.keys() & {"HX-Request", "Sec-Purpose"}
        if request.method == "GET" and not by_itself and request.resolver_match:
            looked(user, request.resolver_match)


def _is_no_page(request: HttpRequest) -> bool:
    return request.path_info.startswith(("/api/", "/static/", "/healthz", "/readyz"))
