"""Signing a device in and out."""

from django.contrib.auth import authenticate
from django.contrib.auth.models import User
from rest_framework.exceptions import AuthenticationFailed, Throttled
from rest_framework.request import Request
from rest_framework.response import Response

from agents import throttle, tokens
from agents.api.base import Access, ApiView
from agents.api.schema import documented
from agents.models import DeviceToken
from agents.serializers import LoginAnswer, LoginBody, NothingBody


class Login(ApiView):
    """An unknown address, a wrong password and an account that is switched off cannot be told apart."""

    access = Access.PUBLIC
    authentication_classes = []
    permission_classes = []

    def get_authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="waymark"'  # keeps a refused sign-in a 401 although nothing authenticates here

    @documented(
        "Sign a device in",
        {200: LoginAnswer},
        body=LoginBody,
        errors=(400, 401, 429),
        public=True,
    )
    def post(self, request: Request) -> Response:
        given = self.body(LoginBody)
        wait = throttle.seconds_to_wait(request._request, given["email"])
        if wait:
            raise Throttled(wait)
        user = authenticate(request._request, email=given["email"], password=given["password"])
        if not isinstance(user, User):
            raise AuthenticationFailed("The e-mail address or the password is wrong.", code="wrong_credentials")
        throttle.succeeded(request._request, given["email"])
        return Response({"token": tokens.issue(user, given.get("device", ""))})


class Logout(ApiView):
    access = Access.OWN

    @documented("Sign this device out: its token ends", {204: None}, errors=(400, 401))
    def post(self, request: Request) -> Response:
        self.body(NothingBody)
        assert isinstance(request.auth, DeviceToken)
        tokens.revoke(request.auth)
        return Response(status=204)
