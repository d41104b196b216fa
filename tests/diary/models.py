"""Somebody's diary, which asks about the day."""

from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.db import models

from agents.agentable import Agentable
from memory.models import OwnedQuerySet


class Diary(Agentable):
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="diaries")
    title = models.CharField(max_length=100)

    prompt = str(Path(__file__).with_name("diary"))

    objects = OwnedQuerySet["Diary"].as_manager()

    def __str__(self) -> str:
        return self.title

    def name(self) -> str:
        return self.title

    def address(self) -> str:
        return f"/diaries/{self.pk}/"

    def briefing(self) -> dict[str, object]:
        return {"title": self.title}

    def tool_modes(self) -> Mapping[str, str]:
        """A diary sends nobody off and runs no commands."""
        return {"create_task": "off", "run_cmd": "off"}
