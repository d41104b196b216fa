"""Skills: taken in, read, switched on, changed, replaced, restored, deleted, and their folder as a zip."""

from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Prefetch, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from agents.api.base import Access, ApiView, Body
from agents.api.documents import LATEST_FIRST
from agents.api.pages import NEWEST_FIRST, page
from agents.api.schema import documented, listed
from agents.serializers import ErrorShape, NothingBody, Strict, TextField
from memory.models import Skill, SkillFile, SkillVersion
from memory.skills import add_skill, change_skill, delete_skill, exported, keep_from, restore_skill, switch_skill


class SkillShape(serializers.ModelSerializer[Skill]):
    text = serializers.CharField(help_text="The whole SKILL.md")
    is_on = serializers.BooleanField(help_text="Agents may use it")
    files = serializers.SerializerMethodField(help_text="Paths of what stands beside it")
    off_for = serializers.SerializerMethodField(help_text="Threads of the agents that do without it")

    class Meta:
        model = Skill
        fields = ["id", "name", "description", "text", "is_on", "files", "off_for", "created_at", "updated_at"]
        read_only_fields = fields

    def get_files(self, skill: Skill) -> list[str]:
        return [file.path for file in skill.files.all()]

    def get_off_for(self, skill: Skill) -> list[UUID]:
        return [each.thread_id for each in skill.off_for.all()]


class SkillVersionShape(serializers.ModelSerializer[SkillVersion]):
    files = serializers.SerializerMethodField(help_text="Paths of what stood beside it")
    is_on = serializers.BooleanField(help_text="Agents could use it, and can again once it is restored")

    class Meta:
        model = SkillVersion
        fields = ["id", "text", "is_on", "files", "written_at"]
        read_only_fields = fields

    def get_files(self, version: SkillVersion) -> list[str]:
        return [*version.sizes]


class SkillBody(Strict):
    replace = serializers.BooleanField(
        default=False, help_text="Put it in the place of your skill of that name, if you have one; else it is refused"
    )


class SkillText(SkillBody):
    text = TextField(help_text="A SKILL.md")


class SkillUpload(SkillBody):
    file = serializers.FileField(help_text="A zip of the folder of a skill, or a SKILL.md", max_length=None)


class SkillChanges(Strict):
    text = TextField(required=False)
    is_on = serializers.BooleanField(required=False)
    off_for = serializers.ListField(child=serializers.UUIDField(), required=False, max_length=1_000)


def skills_of(user: User) -> QuerySet[Skill]:
    """With all that their shape says."""
    files = Prefetch("files", SkillFile.objects.defer("content"))
    return Skill.objects.for_user(user).prefetch_related(files, "off_for")


class Skills(ApiView):
    access = Access.OWN
    parser_classes = [Body, MultiPartParser]

    @listed("Skill", SkillShape, "List your skills, newest first", name="skills_list")
    def get(self, request: Request) -> Response:
        return page(request, skills_of(self.user), NEWEST_FIRST, skill_json)

    @documented(
        "Take in a skill",
        {201: SkillShape},
        body={"application/json": SkillText, "multipart/form-data": SkillUpload},
        errors=(400, 401, 409),
    )
    def post(self, request: Request) -> Response:
        """It is off until you have read it and switch it on. One that it replaces keeps its id, and the agents that it
        is kept from; what that was becomes a version, and the very same stays as it is."""
        if request.content_type.startswith("multipart/"):
            given = self.body(SkillUpload)
            upload = given["file"].read(settings.WAYMARK_SKILL_BYTES + 1)
        else:
            given = self.body(SkillText)
            upload = given["text"].encode()
        added = add_skill(self.user, upload, replace=given["replace"])
        return Response(skill_json(skills_of(self.user).get(pk=added.pk)), status=201)


class OneSkill(ApiView):
    access = Access.OWN

    def found(self, skill_id: UUID) -> Skill:
        return get_object_or_404(skills_of(self.user), pk=skill_id)

    @documented("Read a skill", {200: SkillShape}, errors=(401, 404))
    def get(self, request: Request, skill_id: UUID) -> Response:
        return Response(skill_json(self.found(skill_id)))

    @documented("Change a skill, switch it on or off, or keep it from agents", {200: SkillShape}, body=SkillChanges)
    def patch(self, request: Request, skill_id: UUID) -> Response:
        skill, given = self.found(skill_id), self.body(SkillChanges, partial=True)
        with transaction.atomic():
            if "text" in given:
                change_skill(skill, given["text"])
            if "is_on" in given:
                switch_skill(skill, on=given["is_on"])
            if "off_for" in given:
                keep_from(skill, given["off_for"])
        return Response(skill_json(self.found(skill_id)))

    @documented("Delete a skill", {204: None}, errors=(401, 404))
    def delete(self, request: Request, skill_id: UUID) -> Response:
        delete_skill(self.found(skill_id))
        return Response(status=204)


class SkillVersions(ApiView):
    access = Access.OWN

    @listed("SkillVersion", SkillVersionShape, "List what a skill was before, newest first")
    def get(self, request: Request, skill_id: UUID) -> Response:
        skill = get_object_or_404(Skill.objects.for_user(self.user), pk=skill_id)
        return page(request, skill.versions.all(), LATEST_FIRST, lambda each: SkillVersionShape(each).data)


class RestoreSkill(ApiView):
    access = Access.OWN

    @documented("Let a skill be again what it was then", {200: SkillShape}, body=NothingBody)
    def post(self, request: Request, skill_id: UUID, skill_version_id: UUID) -> Response:
        """What it is until now becomes a version."""
        self.body(NothingBody)
        versions = SkillVersion.objects.filter(skill__user=self.user, skill=skill_id)
        restore_skill(get_object_or_404(versions, pk=skill_version_id))
        return Response(skill_json(get_object_or_404(skills_of(self.user), pk=skill_id)))


class SkillZip(ApiView):
    access = Access.OWN

    @extend_schema(
        operation_id="skills_zip",
        summary="Save the folder of a skill",
        responses={
            (200, "application/zip"): OpenApiTypes.BINARY,
            401: OpenApiResponse(ErrorShape),
            404: OpenApiResponse(ErrorShape),
        },
    )
    def get(self, request: Request, skill_id: UUID) -> HttpResponse:
        skill = get_object_or_404(Skill.objects.for_user(self.user), pk=skill_id)
        return HttpResponse(exported(skill), content_type="application/zip")


def skill_json(skill: Skill) -> dict[str, Any]:
    return SkillShape(skill).data
