"""The connections to models that users have set up."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from agents.providers.capabilities import Capabilities
from agents.providers.catalog import kind_of
from agents.providers.known_models import known
from memory.ids import new_id
from memory.models import OwnedQuerySet


def model_name(kind: str, model: str) -> str:
    """How a model of some kind of provider is called in lists."""
    return f"{model} ({kind_of(kind).label})"


class ConnectionQuerySet(OwnedQuerySet["ModelConnection"]):
    pass


class ModelConnection(models.Model):
    """A way to a model that a user has set up. `sealed_key` is encrypted (see `memory.secrets`) and write-only.

    learned, corrections: see `agents.providers.capabilities`; what the server has said, and what the user says instead.
    routing: the fields of `agents.providers.base.Routing` that are set. works, verdict: the last test and its words.
    """

    NAME_LENGTH = 80

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="model_connections")
    kind = models.CharField(max_length=20, help_text="A kind of agents.providers.catalog")
    base_url = models.CharField(max_length=500, blank=True, default="")
    sealed_key = models.TextField(blank=True, default="")
    key_hint = models.CharField(max_length=4, blank=True, default="", help_text="Last characters of the key")
    name = models.CharField(max_length=NAME_LENGTH, blank=True, default="", db_default="")
    model = models.CharField(max_length=200)
    learned = models.JSONField(default=dict, blank=True, db_default=models.Value({}, models.JSONField()))
    corrections = models.JSONField(default=dict, blank=True, db_default=models.Value({}, models.JSONField()))
    routing = models.JSONField(default=dict, blank=True, db_default=models.Value({}, models.JSONField()))
    tested_at = models.DateTimeField(null=True, blank=True)
    works = models.BooleanField(null=True, blank=True)
    verdict = models.CharField(max_length=500, blank=True, default="", db_default="")
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now())

    objects = ConnectionQuerySet.as_manager()

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=models.Q(is_default=True), name="one_default_connection_per_user"
            )
        ]

    def __str__(self) -> str:
        return self.name or model_name(self.kind, self.model)

    @property
    def address(self) -> str:
        """Where it leads; an empty one is the kind's own."""
        return self.base_url or kind_of(self.kind).default_base_url

    @property
    def capabilities(self) -> Capabilities:
        """What the user says, else the server, else the table."""
        said, learned = Capabilities.read(self.corrections), Capabilities.read(self.learned)
        return said.over(learned).over(known(self.kind, self.model))

    @property
    def lacks_tools(self) -> bool:
        """Whether it is known that no agent can work with it."""
        return self.capabilities.tools is False
