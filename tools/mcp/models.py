"""The servers of tools that users have named."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.models import OwnedQuerySet


class Transport(models.TextChoices):
    """How a server is spoken to. STDIO: a program on this machine, which only staff may start (threat T12)."""

    HTTP = "http", "HTTP"
    STDIO = "stdio", "stdio"


class McpServer(models.Model):
    """A server of one user.

    name: what its tools begin with (`tools.mcp.naming`); it never changes.
    url, sealed_headers: of HTTP; the headers as JSON, encrypted (`memory.secrets`) and write-only. argv: of stdio.
    seen, accepted: `tools.mcp.definitions`; what the server said last, and what its user has agreed to.
    reads_only: own names of accepted tools of which the user has said that they change nothing.
    changed: an accepted tool says something else now, so none is used until the user has looked (threat T11).
    error: what went wrong last; empty when it answered.
    said: of a program, the end of what it has written to its error output (`tools.mcp.complaints`); a column and not in
    Redis, because it goes with its server, and is read with it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="mcp_servers", db_index=False)
    name = models.CharField(max_length=24)
    transport = models.CharField(max_length=10, choices=Transport, default=Transport.HTTP)
    url = models.CharField(max_length=500, blank=True, default="", db_default="")
    argv = models.JSONField(default=list, blank=True, db_default=[])
    sealed_headers = models.TextField(blank=True, default="", db_default="")
    enabled = models.BooleanField(default=True, db_default=True)
    seen = models.JSONField(default=list, blank=True, db_default=[])
    accepted = models.JSONField(default=list, blank=True, db_default=[])
    reads_only = models.JSONField(default=list, blank=True, db_default=[])
    changed = models.BooleanField(default=False, db_default=False)
    error = models.CharField(max_length=500, blank=True, default="", db_default="")
    checked_at = models.DateTimeField(null=True, blank=True)
    said = models.TextField(blank=True, default="", db_default="")
    said_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = OwnedQuerySet["McpServer"].as_manager()

    class Meta:
        ordering = ["created_at"]
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="one_mcp_server_per_name")]

    def __str__(self) -> str:
        return self.name
