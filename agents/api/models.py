"""The models that a user has connected; they are set up in the browser, where keys are typed."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import listed
from agents.models import ModelConnection
from agents.serializers import ModelShape


class Models(ApiView):
    access = Access.OWN

    @listed("Model", ModelShape, "List the models that you have connected, newest first")
    def get(self, request: Request) -> Response:
        return page(request, ModelConnection.objects.for_user(self.user), NEWEST_FIRST, model_json)


def model_json(connection: ModelConnection) -> dict[str, Any]:
    return ModelShape(connection).data
