"""What a reflective companion keeps of a person (mission D11): parts of them, assessments, and proposals to them."""

from typing import ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models.functions import Now, Upper
from pydantic import JsonValue

from memory.ids import new_id
from memory.models import OwnedQuerySet, Thread

ATTRIBUTES: Final = ("beliefs", "fears", "needs", "body")
"""In the order in which they are shown; a JSON object in the database has none."""


class Record(models.Model):
    """Abstract. KEPT: the fields that hold what it says."""

    KEPT: ClassVar[tuple[str, ...]] = ()

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="%(class)ss")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="%(class)ss", db_index=False)
    sources = models.JSONField(default=list, help_text="Whose texts its writer had read (memory.marks)")
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
        ordering = ["created_at", "id"]
        indexes = [models.Index(fields=["thread", "created_at"], name="%(class)ss_of_thread")]

    @classmethod
    def kind(cls) -> str:
        """One of `KINDS`: the name of the model."""
        return str(cls._meta.model_name)

    def title(self) -> str:
        """How people know it."""
        raise NotImplementedError


class Standing(models.TextChoices):
    EMERGING = "emerging"
    CONFIRMED = "confirmed"


class Part(Record):
    """A part of a person, as in internal family systems.

    attributes: `tools.parts.Attributes`. evidence: a list of `tools.quotes.Quote`.
    confirmed: the `content` that its person has confirmed. What says something else now is not confirmed, so whatever
        an agent changes waits for a person again; but for evidence, which may grow.
    """

    SAYS = ("name", "role", "attributes")
    KEPT = (*SAYS, "evidence", "confirmed")
    NAME_LENGTH = 100
    ROLE_LENGTH = 50

    name = models.CharField(max_length=NAME_LENGTH)
    role = models.CharField(max_length=ROLE_LENGTH, help_text="What it does: protector, exile, …")
    attributes = models.JSONField(default=dict)
    evidence = models.JSONField(default=list)
    confirmed = models.JSONField(null=True)

    objects = OwnedQuerySet["Part"].as_manager()

    class Meta(Record.Meta):
        constraints = [
            models.UniqueConstraint("thread", Upper("name"), name="one_part_per_name")  # upper: as `iexact` compares
        ]

    def __str__(self) -> str:
        return self.name

    def title(self) -> str:
        return self.name

    @property
    def content(self) -> dict[str, JsonValue]:
        """All that it says of the person, and on what evidence."""
        return {name: getattr(self, name) for name in (*self.SAYS, "evidence")}

    @property
    def words(self) -> str:
        """What it says of the person, to be read by an agent."""
        lines = [f"{name}: {'; '.join(texts)}" for name in ATTRIBUTES if (texts := self.attributes.get(name))]
        return "\n".join([f"{self.name} ({self.role})", *lines])

    @property
    def status(self) -> Standing:
        confirmed, content = self.confirmed or {}, self.content
        same = all(confirmed.get(name) == content[name] for name in self.SAYS)
        return Standing.CONFIRMED if same else Standing.EMERGING


class Assessment(Record):
    """How things stand with the person at its date, with evidence as of parts."""

    KEPT = ("text", "evidence")
    TEXT_LENGTH = 2_000

    text = models.TextField()
    evidence = models.JSONField(default=list)

    objects = OwnedQuerySet["Assessment"].as_manager()

    class Meta(Record.Meta):
        pass

    def __str__(self) -> str:
        return self.text[:80]

    def title(self) -> str:
        return self.text


class ProposalState(models.TextChoices):
    """A person accepts or declines what is open; what was accepted may be done."""

    OPEN = "open"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    DONE = "done"


class Proposal(Record):
    """Something that the agent suggests to its person."""

    KEPT = ("text", "state")
    TEXT_LENGTH = 2_000

    text = models.TextField()
    state = models.CharField(max_length=10, choices=ProposalState, default=ProposalState.OPEN)

    objects = OwnedQuerySet["Proposal"].as_manager()

    class Meta(Record.Meta):
        pass

    def __str__(self) -> str:
        return self.text[:80]

    def title(self) -> str:
        return self.text


KINDS: Final[dict[str, type[Record]]] = {model.kind(): model for model in (Part, Assessment, Proposal)}
"""What a reflective companion keeps, by the name that addresses and restorers have for it."""
