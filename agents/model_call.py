"""Calls of models, and what stood before the history in each."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from memory.ids import new_id
from memory.models import AgentRun, Thread


class Prompt(models.Model):
    """A text that was sent to a model once or more, kept once: the system prompt of an agent, the JSON of the tools it
    was offered, or what was asked beside its runs. It tells of its user's documents, goal and summaries, so it goes
    with its thread, or once it was not sent for WAYMARK_PROMPTS_KEPT_DAYS.

    digest: SHA-256 of the text (`agents.engine.kept`). sent_at: last, or up to an hour before.
    """

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="prompts", db_index=False)
    digest = models.BinaryField(max_length=32)
    text = models.TextField()
    sent_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["thread", "digest"], name="one_text_per_digest")]
        indexes = [models.Index(fields=["sent_at"])]

    def __str__(self) -> str:
        return f"{len(self.text):,} characters"


class CallStatus(models.TextChoices):
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ModelCall(models.Model):
    """One call of a model: what it used and what it cost then. Unknown stays null, which is not zero.

    A step of a run names its `run`; a call beside it, such as a summary, its `thread`; a call of an agent that was
    deleted only its `user` (see `agents.heirs`).

    What was sent is on record, too: `system`, `tools` and `words` are digests of `Prompt`; the history is that of the
    run's thread, from the entry `from_seq` on to the one before `until_seq` (`agents.sent` puts it together).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    run = models.ForeignKey(AgentRun, models.CASCADE, null=True, related_name="calls", db_index=False)
    thread = models.ForeignKey(Thread, models.CASCADE, null=True, related_name="calls", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="+", db_index=False)
    step = models.PositiveIntegerField(default=0)
    attempt = models.PositiveIntegerField(default=1, db_default=1)
    provider = models.CharField(max_length=20)
    model = models.CharField(max_length=200)
    status = models.CharField(max_length=20, choices=CallStatus, default=CallStatus.STARTED)
    system = models.BinaryField(max_length=32, null=True)
    tools = models.BinaryField(max_length=32, null=True)
    words = models.BinaryField(max_length=32, null=True, help_text="What was asked beside the runs, without a history")
    from_seq = models.PositiveIntegerField(null=True, help_text="First entry of the history that was sent")
    until_seq = models.PositiveIntegerField(null=True, help_text="First entry after those; null until it settles")
    clipped_seq = models.PositiveIntegerField(null=True, help_text="Long texts of entries before it were sent cut")
    input_tokens = models.PositiveBigIntegerField(null=True)
    output_tokens = models.PositiveBigIntegerField(null=True)
    cached_tokens = models.PositiveBigIntegerField(null=True)
    written_tokens = models.PositiveBigIntegerField(null=True, help_text="Part of the input, written to the cache")
    estimated = models.BooleanField(
        default=False, db_default=False, help_text="The server did not count; the tokens are Waymark's guess"
    )
    answered_by = models.CharField(
        max_length=200, blank=True, default="", db_default="", help_text="The model that the reply names"
    )
    cost = models.DecimalField(max_digits=18, decimal_places=9, null=True, help_text="US dollars; null is unknown")
    charged = models.DecimalField(
        max_digits=18, decimal_places=9, null=True, help_text="What budgets count for it; null is what is known"
    )
    charged_tokens = models.PositiveBigIntegerField(null=True)
    latency_ms = models.PositiveIntegerField(null=True)
    error = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(run=None, thread__isnull=False, user=None)
                | models.Q(run__isnull=False, thread=None, user=None)
                | models.Q(run=None, thread=None, user__isnull=False),
                name="call_of_one",
            )
        ]
        indexes = [
            models.Index(fields=["run", "step"]),
            models.Index(fields=["-created_at"]),
            models.Index(fields=["thread"], condition=models.Q(thread__isnull=False), name="calls_beside_runs"),
            models.Index(fields=["user"], condition=models.Q(user__isnull=False), name="calls_of_the_deleted"),
        ]

    def __str__(self) -> str:
        return f"{self.model} step {self.step} ({self.status})"

    @property
    def is_partial(self) -> bool:
        """Whether it broke off, so that the counts are those of its beginning (case COS-02 c)."""
        return self.status in (CallStatus.FAILED, CallStatus.CANCELLED) and bool(self.output_tokens)
