"""Forgetting a source: what relied on it, and what of that goes (mission E5)."""

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.schema import documented
from agents.forgettable import BASES
from agents.refusals import Refused
from agents.serializers import ActionShape, Strict
from tools.forgetting import KINDS, Basis, Relied, forget, relied_on
from tools.restoring import CannotRestore


class ReliedShape(serializers.Serializer[Relied]):
    key = serializers.CharField(help_text="Names it in what is to go")
    kind = serializers.ChoiceField(KINDS)
    id = serializers.CharField(help_text="A UUID; of a file that of its thread, and its path")
    name = serializers.CharField()
    made = serializers.BooleanField(help_text="It was made then; false: only changed, and it would go as a whole")
    run = serializers.UUIDField(allow_null=True, help_text="In which that was; null: it is the source itself")


class ReliedListShape(serializers.Serializer[object]):
    results = ReliedShape(many=True)


class ForgetBody(Strict):
    keys = serializers.ListField(child=serializers.CharField(max_length=5_000), max_length=1_000)


class ReliedOn(ApiView):
    """kind: of the source in the address, whose only id it is."""

    access = Access.OWN
    kind: ClassVar[str]

    def basis(self) -> Basis:
        (source_id,) = self.kwargs.values()
        return BASES[self.kind](self.user, source_id)

    @documented("List what is on record as having relied on it", {200: ReliedListShape}, errors=(401, 404))
    def get(self, request: Request, **kwargs: Any) -> Response:
        return Response({"results": [ReliedShape(each).data for each in relied_on(self.basis())]})

    @documented(
        "Forget some of what relied on it, as one action that can be undone", {200: ActionShape}, body=ForgetBody
    )
    def post(self, request: Request, **kwargs: Any) -> Response:
        try:
            action = forget(self.basis(), self.body(ForgetBody)["keys"])
        except CannotRestore as busy:
            raise Refused("cannot_forget", str(busy)) from busy
        if action is None:
            raise ValidationError({"keys": ["None of these is there."]})
        return Response(ActionShape(action).data)


class NoteReliedOn(ReliedOn):
    kind = "note"


class DocumentReliedOn(ReliedOn):
    kind = "document"


class SessionReliedOn(ReliedOn):
    kind = "session"


class MessageReliedOn(ReliedOn):
    kind = "message"
