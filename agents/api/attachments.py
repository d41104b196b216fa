"""What was attached to a message."""

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from agents.api.base import Access, ApiView
from agents.serializers import ErrorShape
from agents.served import served
from memory.models import Attachment

_ANSWERS = {
    (200, "*/*"): OpenApiTypes.BINARY,
    304: OpenApiResponse(description="As the `ETag` in If-None-Match names it"),
    401: OpenApiResponse(ErrorShape),
    404: OpenApiResponse(ErrorShape),
}


class OneAttachment(ApiView):
    access = Access.OWN

    @extend_schema(summary="Read the content of an attachment", responses=_ANSWERS)
    def get(self, request: Request, attachment_id: UUID) -> HttpResponseBase:
        mine = Attachment.objects.for_user(self.user).defer("block")
        found = get_object_or_404(mine, pk=attachment_id)
        return served(request, found, found.content)


class Thumbnail(ApiView):
    access = Access.OWN

    @extend_schema(summary="Read a small picture of a picture", responses=_ANSWERS)
    def get(self, request: Request, attachment_id: UUID) -> HttpResponseBase:
        mine = Attachment.objects.for_user(self.user).defer("block", "content")
        found = get_object_or_404(mine, pk=attachment_id)
        return served(request, found, found.thumbnail)
