"""What a user was told, that they have seen it, and the devices that are told (mission H10)."""

import json
from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.models import DeviceToken
from agents.serializers import NothingBody, Strict
from goals import push
from goals.notice import Channel, Notice, NoticeKind, Receipt, ReceiptState
from goals.notice_words import link, title
from goals.push_device import PushDevice


class ReceiptShape(serializers.ModelSerializer[Receipt]):
    channel = serializers.ChoiceField(Channel.values)
    state = serializers.ChoiceField(ReceiptState.values)

    class Meta:
        model = Receipt
        fields = ["channel", "whom", "state", "detail", "at"]
        read_only_fields = fields


class NoticeShape(serializers.ModelSerializer[Notice]):
    kind = serializers.ChoiceField(NoticeKind.values)
    thread = serializers.UUIDField(source="thread_id", help_text="Of the conversation that it belongs to")
    subject = serializers.UUIDField(help_text="The action that asks, or the run")
    title = serializers.SerializerMethodField()
    url = serializers.SerializerMethodField(help_text="Address of the page that shows it")
    receipts = ReceiptShape(many=True)

    class Meta:
        model = Notice
        fields = ["id", "kind", "thread", "subject", "title", "said", "url", "at", "seen_at", "settled_at", "receipts"]
        read_only_fields = fields

    def get_title(self, notice: Notice) -> str:
        return title(notice)

    def get_url(self, notice: Notice) -> str:
        return link(notice)


class PushDeviceShape(serializers.ModelSerializer[PushDevice]):
    is_lost = serializers.BooleanField(help_text="Not reached any more, until it registers again")

    class Meta:
        model = PushDevice
        fields = ["id", "name", "is_lost", "created_at"]
        read_only_fields = fields


class PushKeyShape(serializers.Serializer[Any]):
    key = serializers.CharField(help_text="applicationServerKey of a subscription; empty: this server pushes nothing")


class KeysBody(Strict):
    p256dh = serializers.CharField(max_length=100)
    auth = serializers.CharField(max_length=40)


class PushDeviceBody(Strict):
    """A PushSubscription as browsers have it (RFC 8030, RFC 8291)."""

    endpoint = serializers.URLField(max_length=1000)
    keys = KeysBody()
    expirationTime = serializers.FloatField(required=False, allow_null=True)
    name = serializers.CharField(required=False, default="", allow_blank=True, max_length=PushDevice.NAME_LENGTH)


class Notices(ApiView):
    access = Access.OWN

    @listed("Notice", NoticeShape, "List what you were told, newest first, with its receipts")
    def get(self, request: Request) -> Response:
        mine = Notice.objects.for_user(self.user).select_related("thread").prefetch_related("receipts")
        return page(request, mine, NEWEST_FIRST, lambda notice: NoticeShape(notice).data)


class SeenNotice(ApiView):
    access = Access.OWN

    @documented("Say that you have seen what a notice is about", {200: NoticeShape}, body=NothingBody)
    def post(self, request: Request, notice_id: UUID) -> Response:
        """It goes no further way. Twice is the same as once."""
        self.body(NothingBody)
        mine = Notice.objects.for_user(self.user).select_related("thread")
        notice = get_object_or_404(mine, pk=notice_id)
        Notice.objects.open().filter(pk=notice.pk).update(seen_at=timezone.now())
        return Response(NoticeShape(mine.get(pk=notice_id)).data)


class PushKey(ApiView):
    access = Access.OWN

    @documented("Read the key with which this server signs what it pushes", {200: PushKeyShape}, errors=(401,))
    def get(self, request: Request) -> Response:
        return Response({"key": push.public_key()})


class PushDevices(ApiView):
    access = Access.OWN

    @listed("PushDevice", PushDeviceShape, "List the devices that are told, newest first")
    def get(self, request: Request) -> Response:
        mine = PushDevice.objects.for_user(self.user)
        return page(request, mine, NEWEST_FIRST, lambda device: PushDeviceShape(device).data)

    @documented("Be told on this device", {201: PushDeviceShape}, body=PushDeviceBody, errors=(400, 401))
    def post(self, request: Request) -> Response:
        """A device has one endpoint: another one takes its place. An endpoint has one user, whoever registers it last.
        It ends with the token of this device."""
        given = self.body(PushDeviceBody)
        assert isinstance(request.auth, DeviceToken)
        name = given.pop("name") or request.auth.name
        device = push.register(self.user, json.dumps(given), name, token=request.auth)
        return Response(PushDeviceShape(device).data, status=201)


class OnePushDevice(ApiView):
    access = Access.OWN

    @documented("Tell a device nothing any more", {204: None}, errors=(401, 404))
    def delete(self, request: Request, device_id: UUID) -> Response:
        get_object_or_404(PushDevice.objects.for_user(self.user), pk=device_id).delete()
        return Response(status=204)
