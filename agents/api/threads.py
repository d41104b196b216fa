"""What every conversation has: messages, and events as they happen."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.exceptions import Throttled, ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView, Body
from agents.api.pages import page
from agents.api.schema import documented, listed
from agents.live.seats import seats
from agents.live.snapshot import message_json, tip
from agents.live.sse import event_stream
from agents.models import DeviceToken
from agents.serializers import AcceptedShape, ErrorShape, MessageBody, MessageShape, MessageWithFiles, run_json
from agents.services import Accepted, assistant_of, pick_answer, send_message
from memory.keyset import Order
from memory.models import AgentRun, MessageQuerySet, Thread, ThreadMessage

OLDEST_FIRST = Order(("position",), descending=False)
AFTER = OpenApiParameter("after", OpenApiTypes.UUID, description="Only what came after this message of the thread")
TIP = OpenApiParameter(
    "Last-Event-ID",
    str,
    OpenApiParameter.HEADER,
    description="Where to take up the events after this page; empty: without a cursor",
    response=[200],
)
SAID = OpenApiExample(
    "a message",
    value={
        "content": "Create a note about what I need for a half marathon in May",
        "client_message_id": "019ad3c2-5a0f-7c3e-9f64-2b8d1f6a7e10",
    },
    request_only=True,
)


class ThreadView(ApiView):
    access = Access.OWN

    @abstractmethod
    def thread(self) -> Thread:
        """The caller's own thread that the address names.

        Raises:
            Http404: there is none.
        """

    def goal(self) -> UUID | None:
        """The goal that the thread belongs to, if it belongs to one."""
        return None


class Messages(ThreadView):
    parser_classes = [Body, MultiPartParser]

    @listed("Message", MessageShape, "Read a conversation, oldest first", query=[AFTER, TIP])
    def get(self, request: Request, **kwargs: Any) -> Response:
        thread = self.thread()
        cursor = tip(thread.pk)  # before the messages are read, so that nothing falls in between
        messages = ThreadMessage.objects.filter(thread=thread)
        if after := request.query_params.get("after"):
            messages = messages.filter(position__gt=_position(messages, after))
        answer = page(request, messages, OLDEST_FIRST, message_json)
        answer["Last-Event-ID"] = cursor
        return answer

    @documented(
        "Say something; the answer comes as events and messages",
        {202: AcceptedShape, 200: AcceptedShape},
        body={"application/json": MessageBody, "multipart/form-data": MessageWithFiles},
        examples=[SAID],
    )
    def post(self, request: Request, **kwargs: Any) -> Response:
        """202: accepted. 200: this `client_message_id` had been accepted before; the same message and run."""
        given = self.body(MessageWithFiles if request.FILES else MessageBody)
        content, thread = given["content"], self.thread()
        if asked := given.get("answers"):
            if given.get("files"):
                raise ValidationError({"files": ["An answer that was picked has none."]})
            question = get_object_or_404(ThreadMessage.objects.filter(thread=thread), pk=asked)
            accepted = pick_answer(question, content)
        else:
            accepted = send_message(thread, content, given.get("client_message_id"), given.get("files", ()))
        run = _run_of(accepted)
        answer = {"message": message_json(accepted.message), "run": run_json(run, self.goal()) if run else None}
        return Response(answer, status=202 if accepted.created else 200)


@dataclass(frozen=True, slots=True)
class Admitted:
    """A device that was let in to a stream. thread_id: of the conversation; None: of all that is its user's."""

    device_id: UUID
    thread_id: UUID | None = None

    def still(self) -> bool:
        """Whether it is still signed in, and the thread still its user's."""
        devices = DeviceToken.objects.filter(pk=self.device_id, user__is_active=True)
        mine = devices.filter(user__threads=self.thread_id) if self.thread_id else devices
        return mine.exists()


class Events(ThreadView):
    """A stream that stays open. Who may read is decided here; what is streamed is async and holds no thread."""

    @extend_schema(
        summary="Follow a conversation as it happens (server-sent events)",
        description="Each frame is `id: <cursor>`, `event: <type>`, `data: <JSON>`; the type is think, tool_start, "
        "tool_progress, tool_complete, approval, message, run or error. `hello` comes first; `reset` carries "
        "{messages, run, partial}: forget what you had. Send the last id you saw to go on from there.",
        parameters=[
            OpenApiParameter("Last-Event-ID", str, OpenApiParameter.HEADER),
            OpenApiParameter("last_event_id", str, description="The same, for clients that cannot set headers"),
        ],
        responses={
            (200, "text/event-stream"): OpenApiTypes.STR,
            401: OpenApiResponse(ErrorShape),
            404: OpenApiResponse(ErrorShape),
            429: OpenApiResponse(ErrorShape),
        },
    )
    def get(self, request: Request, **kwargs: Any) -> HttpResponseBase:
        assert isinstance(request.auth, DeviceToken)
        thread = self.thread()
        admitted = Admitted(request.auth.pk, thread.pk)
        if seats.are_taken(self.user.pk):
            raise Throttled(60)
        return event_stream(thread.pk, self.user.pk, _cursor(request), admitted.still)


class AssistantThread(ThreadView):
    """Mixin: the thread of the caller's own assistant."""

    def thread(self) -> Thread:
        return assistant_of(self.user).thread


class AssistantMessages(AssistantThread, Messages):
    pass


class AssistantEvents(AssistantThread, Events):
    pass


def _run_of(accepted: Accepted) -> AgentRun | None:
    """A run that was queued with the message is known without asking: both are rows of one statement."""
    if accepted.run_id is None:
        return None
    if accepted.fresh:
        return AgentRun(id=accepted.run_id, created_at=accepted.message.created_at)
    return AgentRun.objects.filter(pk=accepted.run_id).first()


def _cursor(request: Request) -> str | None:
    return request.headers.get("Last-Event-ID") or request.query_params.get("last_event_id")


def _position(messages: MessageQuerySet, after: str) -> int:
    try:
        return messages.values_list("position", flat=True).get(pk=UUID(after))
    except (ValueError, ThreadMessage.DoesNotExist) as problem:
        raise ValidationError({"after": ["Not a message of this thread."]}) from problem
