"""Who calls the API: the bearer token of a device, in the header and nowhere else."""

from django.contrib.auth.models import User
from django.utils import timezone
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from agents import tokens
from agents.models import DeviceToken


class DeviceAuthentication(BaseAuthentication):
    """`request.user` becomes the token's user, `request.auth` its DeviceToken."""

    def authenticate(self, request: Request) -> tuple[User, DeviceToken] | None:
        scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        device = tokens.find(token.strip())
        if device is None:
            raise AuthenticationFailed("The token is unknown or was revoked.", code="invalid_token")
        if device.last_used_at is None or timezone.now() - device.last_used_at > tokens.TOUCH_EVERY:
            tokens.touch(device)
        return device.user, device

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="waymark"'


class DeviceScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = DeviceAuthentication
    name = "device"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "A token of POST auth/login or `manage.py token`."}
