"""Times are shown in the user's own zone."""

import zoneinfo
from collections.abc import Callable

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone

from agents.services import assistant_of


class UserTimeZoneMiddleware:
    """Pages are rendered by sync views; an async view (the event stream) sends instants and needs no zone."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Callable[..., object], args: object, kwargs: object) -> None:
        timezone.deactivate()
        if iscoroutinefunction(view) or _needs_no_zone(request):
            return
        if request.user.is_authenticated:
            timezone.activate(zoneinfo.ZoneInfo(assistant_of(request.user).time_zone))


def _needs_no_zone(request: HttpRequest) -> bool:
    return request.path_info.startswith(("/api/", "/static/", "/healthz", "/readyz"))
