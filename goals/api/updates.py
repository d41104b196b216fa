"""What is new since a device last looked (mission H11)."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.schema import documented
from agents.models import DeviceToken
from agents.serializers import Strict
from goals import looks
from goals.context import build
from goals.moments import moment
from goals.updates import Kind, Update, cost, horizon, updates

SINCE = OpenApiParameter(
    "since", OpenApiTypes.DATETIME, description="`until` of the answer before; without it, where this device left off"
)


class UpdateShape(serializers.Serializer[Update]):
    kind = serializers.ChoiceField([kind.value for kind in Kind])
    id = serializers.UUIDField(help_text="Of a message, or, of asked, decided and change, of an action")
    thread = serializers.UUIDField(help_text="Of the conversation that it belongs to")
    at = serializers.DateTimeField()
    said = serializers.CharField()
    text = serializers.CharField()
    evidence = serializers.CharField(help_text="Address of the page that shows it")


class CostShape(serializers.Serializer[Any]):
    calls = serializers.IntegerField(help_text="Of models")
    known = serializers.DecimalField(18, 9, help_text="US dollars, the part that is known")
    unpriced = serializers.IntegerField(help_text="Calls whose cost is not known")


class NewsShape(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="Ask with it next time: nothing falls in between")
    updates = UpdateShape(many=True)
    cost = CostShape()


class SeenBody(Strict):
    until = serializers.DateTimeField(help_text="Of the answer whose updates were shown")


class SeenShape(serializers.Serializer[Any]):
    since = serializers.DateTimeField(help_text="Where this device goes on")


class Updates(ApiView):
    access = Access.OWN

    @documented("Read what is new", {200: NewsShape}, query=[SINCE], errors=(400, 401))
    def get(self, request: Request) -> Response:
        """Decisions, failures, answers, reports and changes, the newest first, at most a hundred of each kind, and what
        models have cost. An update that was made about the time of the answer before may come again: its id is the
        same."""
        since, until = self._since(request), horizon()
        found = updates(self.user, since, build(self.user).places())
        news = {"since": since, "until": until, "updates": found, "cost": cost(self.user, since)}
        return Response(NewsShape(news).data)

    def _since(self, request: Request) -> Any:
        if not (given := request.query_params.get("since")):
            return looks.since(self.user, device(request))
        if found := moment(given):
            return found
        raise ValidationError({"since": ["Not a moment, such as `until` of an answer."]})


class Seen(ApiView):
    access = Access.OWN

    @documented("Say until when this device has shown all", {200: SeenShape}, body=SeenBody)
    def post(self, request: Request) -> Response:
        """A moment that lies before the last one changes nothing."""
        looks.seen(self.user, device(request), self.body(SeenBody)["until"])
        return Response(SeenShape({"since": looks.since(self.user, device(request))}).data)


def device(request: Request) -> str:
    """The name under which a device's place is kept."""
    assert isinstance(request.auth, DeviceToken)
    return str(request.auth.pk)
