"""Search in everything of a user."""

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView
from agents.api.schema import documented
from goals.search import Hit, Kind, search

QUERY = OpenApiParameter("q", str, description="Words; each is looked for by its beginning", required=True)


class HitShape(serializers.Serializer[Hit]):
    kind = serializers.ChoiceField([kind.value for kind in Kind])
    id = serializers.UUIDField(help_text="Of the thing; of a file that of its goal")
    thread = serializers.UUIDField(allow_null=True, help_text="Null: a document for all agents")
    name = serializers.CharField()
    excerpt = serializers.CharField(source="text")
    at = serializers.DateTimeField()


class FoundShape(serializers.Serializer[object]):
    results = HitShape(many=True)


class Search(ApiView):
    access = Access.OWN

    @documented("Search everything of yours", {200: FoundShape}, query=[QUERY], errors=(401, 429))
    def get(self, request: Request) -> Response:
        """Goals, notes, messages of live sessions, earlier sessions, learnings, documents, files, skills, times, plans
        and what is measured, best first."""
        hits = search(self.user, request.query_params.get("q", "")[:200])
        return Response({"results": [HitShape(hit).data for hit in hits]})
