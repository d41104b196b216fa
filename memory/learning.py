"""What an agent has come to believe about its person or its work (mission E1, H9)."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.owned import OwnedQuerySet


class LearningQuerySet(OwnedQuerySet["Learning"]):
    def current(self) -> Self:
        """What holds now: neither replaced nor taken back."""
        return self.filter(ended_at=None)


class Learning(models.Model):
    """One sentence that an agent keeps in mind. It never comes to say something else: what contradicts it takes its
    place, and the old one stays to be read.

    number: how agent and person call it, counted in one conversation. message: what was answered when it was learned;
    action: the call that wrote it down, a row of `tools.models.AgentAction`. Its person may have written it: then there
    is neither. replaced_by: what holds instead; a learning without it that has ended was taken back.
    """

    TEXT_LENGTH = 500

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="learnings")
    thread = models.ForeignKey("memory.Thread", models.CASCADE, related_name="learnings", db_index=False)
    number = models.PositiveIntegerField()
    text = models.CharField(max_length=TEXT_LENGTH)
    author = models.CharField(max_length=10)
    sources = models.JSONField(
        default=list, blank=True, db_default=[], help_text="Whose texts its writer had read (memory.marks)"
    )
    message = models.ForeignKey("memory.ThreadMessage", models.SET_NULL, null=True, related_name="+")
    action = models.UUIDField(null=True)
    replaced_by = models.ForeignKey("self", models.SET_NULL, null=True, related_name="replaced")
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = LearningQuerySet.as_manager()

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["thread", "number"], name="one_learning_per_number")]

    def __str__(self) -> str:
        return self.text
