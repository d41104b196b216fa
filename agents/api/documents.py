"""Documents: of a user, for all of their agents, and of one agent; one by one, with what each said before."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.api.threads import AssistantThread, ThreadView
from agents.serializers import NothingBody, Strict, TextField
from memory.document import BOOTSTRAP, MEMORY
from memory.documents import Place, delete_document, place, place_of, restore_document, write_document
from memory.keyset import Order
from memory.models import Document, DocumentVersion

LATEST_FIRST = Order(("written_at", "pk"), descending=True)


class DocumentShape(serializers.ModelSerializer[Document]):
    name = serializers.CharField(help_text=f"One of {', '.join((*BOOTSTRAP, MEMORY))}, or the day of a daily note")
    thread = serializers.UUIDField(source="thread_id", allow_null=True, help_text="Null: for all agents")
    sources = serializers.ListField(child=serializers.CharField(), help_text="Whose texts the agent had read")

    class Meta:
        model = Document
        fields = ["id", "name", "thread", "text", "author", "edited_by", "sources", "created_at", "updated_at"]
        read_only_fields = fields


class DocumentVersionShape(serializers.ModelSerializer[DocumentVersion]):
    class Meta:
        model = DocumentVersion
        fields = ["id", "text", "author", "written_at"]
        read_only_fields = fields


class NamedDocumentBody(Strict):
    name = serializers.CharField(max_length=20)
    text = TextField()


class DocumentBody(Strict):
    text = TextField()


class Documents(ApiView):
    access = Access.OWN

    @listed("SharedDocument", DocumentShape, "List the documents for all of your agents", name="documents_list")
    def get(self, request: Request) -> Response:
        mine = Document.objects.for_user(self.user).filter(thread=None)
        return page(request, mine, NEWEST_FIRST, document_json)

    @documented("Write a document for all of your agents", {201: DocumentShape}, body=NamedDocumentBody)
    def post(self, request: Request) -> Response:
        """There need not have been one; what it said becomes a version."""
        given = self.body(NamedDocumentBody)
        if given["name"] not in BOOTSTRAP:
            raise ValidationError({"name": [f"One of {', '.join(BOOTSTRAP)}."]})
        return Response(
            document_json(write_document(Place(self.user.pk, None, given["name"]), given["text"])), status=201
        )


class AgentDocuments(ThreadView):
    """Mixin: those of the agent whose thread the address names."""

    @listed("Document", DocumentShape, "List the memory and the daily notes of an agent")
    def get(self, request: Request, **kwargs: Any) -> Response:
        return page(request, Document.objects.filter(thread=self.thread()), NEWEST_FIRST, document_json)

    @documented("Write the memory or a daily note of an agent", {201: DocumentShape}, body=NamedDocumentBody)
    def post(self, request: Request, **kwargs: Any) -> Response:
        """There need not have been one; what it said becomes a version."""
        given = self.body(NamedDocumentBody)
        at = place(self.user.pk, self.thread().pk, given["name"])
        if at.thread is None:
            raise ValidationError({"name": ["This one is for all agents."]})
        return Response(document_json(write_document(at, given["text"])), status=201)


class AssistantDocuments(AssistantThread, AgentDocuments):
    pass


class OneDocument(ApiView):
    access = Access.OWN

    def found(self, document_id: UUID) -> Document:
        return get_object_or_404(Document.objects.for_user(self.user), pk=document_id)

    @documented("Read a document", {200: DocumentShape}, errors=(401, 404))
    def get(self, request: Request, document_id: UUID) -> Response:
        return Response(document_json(self.found(document_id)))

    @documented("Change a document", {200: DocumentShape}, body=DocumentBody)
    def patch(self, request: Request, document_id: UUID) -> Response:
        at = place_of(self.found(document_id))
        return Response(document_json(write_document(at, self.body(DocumentBody)["text"])))

    @documented("Delete a document with its history", {204: None}, errors=(401, 404))
    def delete(self, request: Request, document_id: UUID) -> Response:
        delete_document(self.found(document_id))
        return Response(status=204)


class DocumentVersions(ApiView):
    access = Access.OWN

    @listed("DocumentVersion", DocumentVersionShape, "List what a document said before, newest first")
    def get(self, request: Request, document_id: UUID) -> Response:
        document = get_object_or_404(Document.objects.for_user(self.user), pk=document_id)
        return page(request, document.versions.all(), LATEST_FIRST, lambda each: DocumentVersionShape(each).data)


class RestoreDocument(ApiView):
    access = Access.OWN

    @documented("Let a document say again what it said then", {200: DocumentShape}, body=NothingBody)
    def post(self, request: Request, document_id: UUID, document_version_id: UUID) -> Response:
        """What it says until now becomes a version."""
        self.body(NothingBody)
        versions = DocumentVersion.objects.filter(document__user=self.user, document=document_id)
        version = get_object_or_404(versions.select_related("document"), pk=document_version_id)
        return Response(document_json(restore_document(version)))


def document_json(document: Document) -> dict[str, Any]:
    return DocumentShape(document).data
