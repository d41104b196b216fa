"""What is new since a device last looked (mission H11)."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import Throttled, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.schema import documented
from agents.api.threads import Admitted
from agents.costs import spent_since
from agents.live.seats import seats
from agents.live.sse import streaming
from agents.models import DeviceToken
from agents.serializers import ErrorShape, Strict
from goals import looks
from goals.moments import moment
from goals.updates import Kind, Update
from goals.updates_live import News, follow, news

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


class SpentShape(serializers.Serializer[Any]):
    calls = serializers.IntegerField(help_text="Of models")
    known = serializers.DecimalField(18, 9, source="cost", help_text="US dollars, the part that is known")
    unpriced = serializers.IntegerField(help_text="Calls whose cost is not known")


class NewsShape(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField(help_text="Ask with it next time: nothing falls in between")
    updates = UpdateShape(many=True)


class AnswerShape(NewsShape):
    cost = SpentShape()


class SeenBody(Strict):
    until = serializers.DateTimeField(help_text="Of the answer whose updates were shown")


class SeenShape(serializers.Serializer[Any]):
    since = serializers.DateTimeField(help_text="Where this device goes on")


class Updates(ApiView):
    access = Access.OWN

    @documented("Read what is new", {200: AnswerShape}, query=[SINCE], errors=(400, 401))
    def get(self, request: Request) -> Response:
        """Decisions, failures, answers, reports and changes, the newest first, at most a hundred of each kind, and what
        models have cost. An update that was made about the time of the answer before may come again: its id is the
        same."""
        since = since_of(request, self.user)
        found = news(self.user, since)
        return Response({**news_json(found), "cost": SpentShape(spent_since(self.user, since)).data})


class UpdateEvents(ApiView):
    """A stream that stays open, as that of a conversation."""

    access = Access.OWN

    @extend_schema(
        summary="Follow what is new as it happens (server-sent events)",
        description="Each frame is `id: <until>`, `event: updates`, `data: <the JSON of GET updates, without cost>`. "
        "The first comes at once, with what is new since the moment that is given. Send the last id you saw to go on "
        "there.",
        parameters=[SINCE, OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER)],
        responses={
            (200, "text/event-stream"): OpenApiTypes.STR,
            400: OpenApiResponse(ErrorShape),
            401: OpenApiResponse(ErrorShape),
            429: OpenApiResponse(ErrorShape),
        },
    )
    def get(self, request: Request) -> HttpResponseBase:
        last = moment(request.headers.get("Last-Event-ID", ""))
        since = looks.within_reach(last) if last else since_of(request, self.user)
        admitted = Admitted(UUID(device(request)))
        if seats.are_taken(self.user.pk):
            raise Throttled(60)
        return streaming(self.user.pk, follow(self.user, since, news_json, admitted.still))


class Seen(ApiView):
    access = Access.OWN

    @documented("Say until when this device has shown all", {200: SeenShape}, body=SeenBody)
    def post(self, request: Request) -> Response:
        """A moment that lies before the last one changes nothing."""
        looks.seen(self.user, device(request), self.body(SeenBody)["until"])
        return Response(SeenShape({"since": looks.since(self.user, device(request))}).data)


def since_of(request: Request, user: User) -> datetime:
    """Since when things are new for whoever asks. Raises: ValidationError."""
    if not (given := request.query_params.get("since")):
        return looks.since(user, device(request))
    if found := moment(given):
        return looks.within_reach(found)
    raise ValidationError({"since": ["Not a moment, such as `until` of an answer."]})


def news_json(found: News) -> dict[str, Any]:
    return NewsShape(found).data


def device(request: Request) -> str:
    """The name under which a device's place is kept."""
    assert isinstance(request.auth, DeviceToken)
    return str(request.auth.pk)
