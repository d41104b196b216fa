"""What was attached to a message, for whoever's message it is."""

from uuid import UUID

from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_GET

from agents.served import served
from agents.signed_in import SignedInRequest, signed_in
from memory.models import Attachment


@require_GET
@signed_in
def attachment(request: SignedInRequest, attachment_id: UUID) -> HttpResponseBase:
    mine = Attachment.objects.for_user(request.user).defer("block")
    found = get_object_or_404(mine, pk=attachment_id)
    return served(request, found, found.content)


@require_GET
@signed_in
def thumbnail(request: SignedInRequest, attachment_id: UUID) -> HttpResponseBase:
    mine = Attachment.objects.for_user(request.user).defer("block", "content")
    found = get_object_or_404(mine, pk=attachment_id)
    return served(request, found, found.thumbnail)
