"""Skills: how something is done, written down once, read by agents when they need it (mission E1)."""

import io
import zipfile

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.owned import OwnedQuerySet


class Skill(models.Model):
    """The folder of a skill, in the format of agentskills.io: its SKILL.md, and files beside it.

    text: the whole SKILL.md; `name` and `description` are what its front matter says. is_on: its user has looked at all
    of it and lets agents use it.
    """

    NAME_LENGTH, DESCRIPTION_LENGTH = 64, 1024

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="skills", db_index=False)
    name = models.CharField(max_length=NAME_LENGTH)
    description = models.CharField(max_length=DESCRIPTION_LENGTH)
    text = models.TextField()
    is_on = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(db_default=Now())

    objects = OwnedQuerySet["Skill"].as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_skill_per_name")]

    def __str__(self) -> str:
        return self.name


class SkillFile(models.Model):
    """A file beside a SKILL.md. path: within the folder, with slashes."""

    PATH_LENGTH = 200

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    skill = models.ForeignKey(Skill, models.CASCADE, related_name="files", db_index=False)
    path = models.CharField(max_length=PATH_LENGTH)
    content = models.BinaryField()

    class Meta:
        ordering = ["path"]
        constraints = [models.UniqueConstraint(fields=["skill", "path"], name="one_skill_file_per_path")]

    def __str__(self) -> str:
        return self.path

    @property
    def text(self) -> str | None:
        """What agents read of it; None: it is no text."""
        try:
            return bytes(self.content).decode()
        except UnicodeDecodeError:
            return None


class SkillVersion(models.Model):
    """What a skill was until something else took its place, all of its files with it.

    files: a zip of them. is_on: its user had read it then, and let agents use it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    skill = models.ForeignKey(Skill, models.CASCADE, related_name="versions", db_index=False)
    text = models.TextField()
    files = models.BinaryField()
    is_on = models.BooleanField()
    written_at = models.DateTimeField()

    class Meta:
        ordering = ["-written_at"]
        indexes = [models.Index(fields=["skill", "-written_at"])]

    def __str__(self) -> str:
        return f"{self.skill_id} ({self.written_at:%Y-%m-%d %H:%M})"

    @property
    def sizes(self) -> dict[str, int]:
        """Bytes of each file, by its path."""
        with zipfile.ZipFile(io.BytesIO(self.files)) as archive:
            return {entry.filename: entry.file_size for entry in archive.infolist()}


class SkillOff(models.Model):
    """A skill that is off for one agent."""

    skill = models.ForeignKey(Skill, models.CASCADE, related_name="off_for", db_index=False)
    thread = models.ForeignKey("memory.Thread", models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["skill", "thread"], name="skill_off_once")]

    def __str__(self) -> str:
        return f"{self.skill_id} off for {self.thread_id}"
