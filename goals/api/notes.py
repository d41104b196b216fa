"""Notes: of a goal, and one by one."""

from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.serializers import NoteBody, NoteShape, NothingBody
from goals.api.goals import GoalThread
from goals.schedules import note_changed
from memory import notes
from memory.keyset import Order
from memory.models import Note, NoteVersion

LATEST_FIRST = Order(("written_at", "pk"), descending=True)


class NoteVersionShape(serializers.ModelSerializer[NoteVersion]):
    class Meta:
        model = NoteVersion
        fields = ["id", "title", "body", "author", "written_at"]
        read_only_fields = fields


class GoalNotes(GoalThread):
    @listed("Note", NoteShape, "List the notes of a goal, newest first")
    def get(self, request: Request, goal_id: UUID) -> Response:
        return page(request, Note.objects.filter(thread=self.thread()), NEWEST_FIRST, note_json)

    @documented("Write a note", {201: NoteShape}, body=NoteBody)
    def post(self, request: Request, goal_id: UUID) -> Response:
        given = self.body(NoteBody)
        made = notes.create_note(self.thread(), **given)
        note_changed(made.thread)
        return Response(note_json(made), status=201)


class OneNote(ApiView):
    access = Access.OWN

    def found(self, note_id: UUID) -> Note:
        return get_object_or_404(Note.objects.for_user(self.user), pk=note_id)

    @documented("Read a note", {200: NoteShape}, errors=(401, 404))
    def get(self, request: Request, note_id: UUID) -> Response:
        return Response(note_json(self.found(note_id)))

    @documented("Change a note", {200: NoteShape}, body=NoteBody)
    def patch(self, request: Request, note_id: UUID) -> Response:
        note = self.found(note_id)
        notes.update_note(note, **self.body(NoteBody, partial=True))
        note_changed(note.thread)
        return Response(note_json(note))

    @documented("Delete a note", {204: None}, errors=(401, 404))
    def delete(self, request: Request, note_id: UUID) -> Response:
        notes.delete_note(self.found(note_id))
        return Response(status=204)


class NoteVersions(ApiView):
    access = Access.OWN

    @listed("NoteVersion", NoteVersionShape, "List what a note said before, newest first")
    def get(self, request: Request, note_id: UUID) -> Response:
        note = get_object_or_404(Note.objects.for_user(self.user), pk=note_id)
        return page(request, note.versions.all(), LATEST_FIRST, lambda version: NoteVersionShape(version).data)


class RestoreNote(ApiView):
    access = Access.OWN

    @documented("Let a note say again what it said then", {200: NoteShape}, body=NothingBody)
    def post(self, request: Request, note_id: UUID, version_id: UUID) -> Response:
        """What it says until now becomes a version."""
        self.body(NothingBody)
        versions = NoteVersion.objects.filter(note__user=self.user, note=note_id).select_related("note__thread")
        restored = notes.restore(get_object_or_404(versions, pk=version_id))
        note_changed(restored.thread)
        return Response(note_json(restored))


def note_json(note: Note) -> dict[str, Any]:
    return NoteShape(note).data
