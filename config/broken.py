"""The page for what no view has caught."""

import sys

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from memory.pool import DATABASE_AWAY


def broken(request: HttpRequest) -> HttpResponse:
    """503 when the database is away, which ends by itself, else 500. Neither page asks the database for anything."""
    if isinstance(sys.exception(), DATABASE_AWAY):
        answer = render(None, "503.html", status=503)
        answer["Retry-After"] = "5"
        return answer
    return render(None, "500.html", status=500)
