"""What every route has in common: who may call it, JSON in, JSON out."""

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, ClassVar, NoReturn, cast

from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver
from django.urls.converters import UUIDConverter, register_converter
from rest_framework.exceptions import NotFound, ParseError, Throttled
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from agents import shares
from agents.api_errors import TooLarge
from agents.serializers import Strict
from memory.encoding import dumps


class Access(StrEnum):
    """The policy of a route. Every route must declare one (see `declared`)."""

    PUBLIC = "public"  # no account needed, nothing private answered
    OWN = "own"  # a signed-in user's own objects; anybody else's do not exist


class AnyCaseUUID(UUIDConverter):
    """Some platforms write UUIDs in capitals."""

    regex = "[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"


register_converter(AnyCaseUUID, "id")


class Body(BaseParser):
    """Strict JSON: no NaN, no endless nesting, at most DATA_UPLOAD_MAX_MEMORY_SIZE bytes."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        body: bytes = stream.read(limit + 1)
        if len(body) > limit:
            raise TooLarge(f"The request may have {limit:,} bytes at most.")
        try:
            return json.loads(body.decode(), parse_constant=_refuse)
        except (ValueError, RecursionError) as problem:
            raise ParseError(f"The body is not JSON: {problem}") from problem


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class Json(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None) -> bytes:
        return b"" if data is None else dumps(data, default=str)


class ApiView(APIView):
    """A route. `access` is its policy; what a caller may reach comes through `for_user(self.user)`."""

    access: ClassVar[Access]
    parser_classes = [Body]
    renderer_classes = [Json]
    metadata_class = None
    _counted: int | None = None

    @property
    def user(self) -> User:
        return cast(User, self.request.user)

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            return super().dispatch(request, *args, **kwargs)
        finally:
            if self._counted is not None:
                shares.requests.end(self._counted)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if isinstance(request.user, User):
            if not shares.requests.begin(request.user.pk):
                raise Throttled(1)
            self._counted = request.user.pk

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[BaseRenderer, str]:
        """There is one representation; what the client would accept does not change it."""
        return Json(), Json.media_type

    def body[S: Strict](self, shape: type[S], partial: bool = False) -> dict[str, Any]:
        """Return the checked body of the request.

        Raises:
            ValidationError: naming each field that is unknown or wrong.
        """
        given = shape(data=self.request.data, partial=partial)
        given.is_valid(raise_exception=True)
        return cast(dict[str, Any], given.validated_data)


class Nowhere(ApiView):
    """Addresses that lead nowhere are answered in the API's own words."""

    access = Access.PUBLIC
    authentication_classes = []
    permission_classes = []
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound


def declared(patterns: list[URLPattern | URLResolver]) -> list[URLPattern | URLResolver]:
    """Return `patterns` if each of their views says who may use it.

    Raises:
        ImproperlyConfigured: at start-up, naming the route that does not.
    """
    for pattern in _leaves(patterns):
        if not isinstance(getattr(getattr(pattern.callback, "cls", None), "access", None), Access):
            raise ImproperlyConfigured(f"The API route {pattern.pattern} does not declare its access.")
    return patterns


def _leaves(patterns: Iterable[URLPattern | URLResolver]) -> Iterable[URLPattern]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _leaves(pattern.url_patterns)
        else:
            yield pattern
