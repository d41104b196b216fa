"""The pages for what no view has caught. None of them asks the database for anything."""

import sys

from django.core.exceptions import DisallowedHost
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from agents import api_errors, vitals
from memory import disk
from memory.pool import DATABASE_AWAY, shortage


def broken(request: HttpRequest) -> HttpResponse:
    """503 when the database is away, which ends by itself, or short of something, which is named; else 500. The API's
    in its own shape."""
    if request.path_info.startswith("/api/"):
        return api_errors.server_error(sys.exception())
    error = sys.exception()
    if isinstance(error, DATABASE_AWAY):
        is_full = any(disk.is_full(folder) for folder, _ in vitals.disks())
        lacks = shortage(error) or ("The disk of this server is full." if is_full else "")
        answer = render(None, "503.html", {"lacks": lacks}, status=503)
        answer["Retry-After"] = "5"
        return answer
    return render(None, "500.html", status=500)


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400; most who see it reach Waymark by a name that nobody has allowed yet."""
    return render(None, "400.html", {"is_host": isinstance(exception, DisallowedHost)}, status=400)


class NotAllowedMiddleware(MiddlewareMixin):
    """405 as a page, for who comes by its address to what only takes forms: from the history of a browser, or back from
    signing in. Django's own answer is empty, which browsers show as a fault of theirs."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if not isinstance(response, HttpResponseNotAllowed):
            return response
        page = render(request, "405.html", status=405)
        page["Allow"] = response["Allow"]
        return page
