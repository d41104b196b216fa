"""The files of a goal's agent: list, upload, download, delete (mission D5)."""

from uuid import UUID

from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Body
from agents.api.pages import limit_of, link_to
from agents.api.schema import PAGING, documented
from agents.serializers import ActionShape, ErrorShape
from goals.api.goals import GoalThread
from goals.file_serving import downloaded
from goals.serializers import FileBody, FilesShape
from memory.files import safe_name
from tools.filing import add_file, delete_file, files_of

_CONTENT = {
    (200, "application/octet-stream"): OpenApiTypes.BINARY,
    401: OpenApiResponse(ErrorShape),
    404: OpenApiResponse(ErrorShape),
}


class GoalFiles(GoalThread):
    parser_classes = [Body, MultiPartParser]

    @documented(
        "List the files that a goal's agent has in its workspace, by path",
        {200: FilesShape},
        query=PAGING,
        name="goals_files_list",
    )
    def get(self, request: Request, goal_id: UUID) -> Response:
        """A cursor is the path of the last file of the page before."""
        found = files_of(self.thread(), request.query_params.get("cursor", ""), limit_of(request))
        more = link_to(request, found.after) if found.left else None
        return Response({**FilesShape(found).data, "next": more})

    @documented("Put a file into the workspace", {201: ActionShape}, body={"multipart/form-data": FileBody})
    def post(self, request: Request, goal_id: UUID) -> Response:
        """One of the same name is replaced, and kept: what is answered is an action, which can be undone."""
        thread, given = self.thread(), self.body(FileBody)
        upload = given["file"]
        path = given.get("path") or safe_name(upload.name or "")
        return Response(ActionShape(add_file(thread, path, upload.size, upload.chunks())).data, status=201)


class GoalFile(GoalThread):
    @extend_schema(operation_id="goals_files_read", summary="Read a file of the workspace", responses=_CONTENT)
    def get(self, request: Request, goal_id: UUID, path: str) -> HttpResponseBase:
        return downloaded(self.thread(), path)

    @documented("Delete a file of the workspace; what is answered can be undone", {200: ActionShape}, errors=(401, 404))
    def delete(self, request: Request, goal_id: UUID, path: str) -> Response:
        action = delete_file(self.thread(), path)
        if action is None:
            raise Http404
        return Response(ActionShape(action).data)
