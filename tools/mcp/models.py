"""The servers of tools that users have named."""

from urllib.parse import urlsplit

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.models import OwnedQuerySet
from tools.addresses import INSIDE, OTHER_PORT


class Transport(models.TextChoices):
    """How a server is spoken to. STDIO: a program on this machine, which only staff may start (threat T12)."""

    HTTP = "http", "HTTP"
    STDIO = "stdio", "stdio"


class McpServer(models.Model):
    """A server of one user.

    name: what its tools begin with (`tools.mcp.naming`); it never changes, because what agents did is on record by it.
    label: what its user calls it; may be empty, and changes as they like.
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
    label = models.CharField(max_length=60, blank=True, default="", db_default="")
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
        return self.label or self.name

    @property
    def may_be_allowed(self) -> bool:
        """Whether it went wrong because of what the operator may allow (`WAYMARK_FETCH_PRIVATE`)."""
        return any(words in self.error for words in (INSIDE, OTHER_PORT))


class SignInQuerySet(OwnedQuerySet["McpSignIn"]):
    owner = "server__user"


class McpSignIn(models.Model):
    """What is known of signing in to a server (OAuth). It is there from the first time that the server asks for it; it
    goes when the server's address changes, or whom it sends people to.

    found: `tools.mcp.discovery.Found`, as JSON; it holds no secret.
    sealed_client, sealed_tokens: as whom the authorization server knows us, and what it gave us
    (`tools.mcp.oauth.Tokens`), as JSON, encrypted; empty without.
    grant: which sign-in the tokens are from, so that no connection is used for another's.
    signed_in_at: when its user last did; null when they never did or signed out.
    refreshing_until: somebody asks for new tokens, and nobody else may before that.
    state, state_until, sealed_begun: a sign-in on its way: the SHA-256 of its state, until when it may come back, and
    what it needs then (`signing_in`).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    server = models.OneToOneField(McpServer, models.CASCADE, related_name="sign_in")
    found = models.JSONField()
    sealed_client = models.TextField(blank=True, default="", db_default="")
    sealed_tokens = models.TextField(blank=True, default="", db_default="")
    grant = models.UUIDField(null=True, unique=True)
    signed_in_at = models.DateTimeField(null=True)
    refreshing_until = models.DateTimeField(null=True)
    state = models.CharField(max_length=64, blank=True, default="", db_default="")
    state_until = models.DateTimeField(null=True)
    sealed_begun = models.TextField(blank=True, default="", db_default="")

    objects = SignInQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.server_id} at {self.host}"

    @property
    def host(self) -> str:
        """Where people sign in, as it is looked up: no sign in it looks like another."""
        host: str = urlsplit(self.found["server"]["authorization_endpoint"]).netloc
        return host

    @property
    def issuer(self) -> str:
        """For whom they do, where that is another host; else empty. Who signs in there gives their answer to it."""
        host: str = urlsplit(self.found["server"]["issuer"]).netloc
        return host if host != self.host else ""

    @property
    def is_done(self) -> bool:
        return bool(self.sealed_tokens)

    @property
    def reads_documents(self) -> bool:
        """The authorization server reads who we are at an address of ours."""
        return bool(self.found["server"].get("client_id_metadata_document_supported"))

    @property
    def needs_client(self) -> bool:
        """The authorization server has no registration, so its user must have registered us."""
        return not self.found["server"].get("registration_endpoint")
