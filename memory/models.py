"""What is remembered: the identity and transcript of every agent, its runs, and its notes.

The hot path writes these tables in `agents.engine.journal`, one statement per durable point; everything else is
ordinary Django. A foreign key has no index of its own where one that begins with it exists: each index of a hot table
is paid for with every row.
"""

from decimal import Decimal
from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.db.models.expressions import RawSQL
from django.db.models.functions import Now

from memory.agent_history import (
    AgentHistory as AgentHistory,
    ArchiveReason as ArchiveReason,
    ArchiveStatus as ArchiveStatus,
)
from memory.attachment import Attachment as Attachment
from memory.document import Document as Document, DocumentVersion as DocumentVersion
from memory.ids import new_id
from memory.learning import Learning as Learning
from memory.note import (
    Author as Author,
    Note as Note,
    NoteQuerySet as NoteQuerySet,
    NoteVersion as NoteVersion,
)
from memory.owned import OwnedQuerySet as OwnedQuerySet
from memory.skill import (
    Skill as Skill,
    SkillFile as SkillFile,
    SkillOff as SkillOff,
    SkillVersion as SkillVersion,
)


class ThreadQuerySet(OwnedQuerySet["Thread"]):
    """Threads of a user."""


class Thread(models.Model):
    """The identity, transcript and owner of one Agentable (one-to-one).

    `kind` and the Agentable's own `thread` link lead to it without a generic foreign key (see `agents.agentable`).
    `live_run` and `pending` change only by arithmetic in the row: a sub-select would see the snapshot of the
    statement's start even after it waited for a lock. `generation` counts the sessions that were archived; the live
    one begins at the entry `from_seq` and changes only while no run works on it (`memory.archive`). `news` are lines of
    `memory.news`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="threads")
    kind = models.CharField(max_length=60, help_text="Model of the Agentable, such as goals.goal")
    live_run = models.UUIDField(null=True, help_text="The run that will answer new messages")
    pending = models.PositiveIntegerField(default=0, help_text="User messages no run has taken yet")
    told = models.JSONField(
        default=dict, blank=True, db_default={}, help_text="What the model was last told of (memory.context.Told)"
    )
    generation = models.PositiveIntegerField(default=0, db_default=0, help_text="Sessions archived so far")
    from_seq = models.PositiveIntegerField(default=1, db_default=1, help_text="First entry of the live session")
    news = models.TextField(
        blank=True, default="", db_default="", help_text="What the model is told with the next message"
    )
    sources = models.JSONField(
        default=list, blank=True, db_default=[], help_text="Whose texts its agent has read (memory.marks)"
    )
    active_at = models.DateTimeField(db_default=Now(), help_text="When the user last wrote")
    created_at = models.DateTimeField(db_default=Now())

    objects = ThreadQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class RunStatus(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    RETRY_WAIT = "retry_wait"
    WAITING_APPROVAL = "waiting_approval"
    WAITING_BUDGET = "waiting_budget"
    CANCELLING = "cancelling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


LIVE = (
    RunStatus.QUEUED,
    RunStatus.RUNNING,
    RunStatus.RETRY_WAIT,
    RunStatus.WAITING_APPROVAL,
    RunStatus.WAITING_BUDGET,
    RunStatus.CANCELLING,
)
WAITS = (RunStatus.RETRY_WAIT, RunStatus.WAITING_BUDGET)
"""Let go of until a time, or until something changes; messages that come meanwhile join them."""
STOPPED = (RunStatus.CANCELLING, RunStatus.CANCELLED)


class Trigger(models.TextChoices):
    MESSAGE = "message"
    TASK = "task"
    REPORT = "report"
    RETRY = "retry"
    DECISION = "decision"
    SCHEDULE = "schedule"


class RunQuerySet(OwnedQuerySet["AgentRun"]):
    owner = "thread__user"

    def live(self) -> Self:
        return self.filter(status__in=LIVE)


class AgentRun(models.Model):
    """One worker job of one agent, from wake-up until nothing is left to do, it must wait, or a limit is hit.

    The row is the lock: the partial unique index allows one live run per thread, `lease_token` and `fence` say which
    worker may write. Only PostgreSQL's clock decides about `lease_until` and `due_at`.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="runs", db_index=False)
    status = models.CharField(max_length=20, choices=RunStatus, default=RunStatus.QUEUED)
    trigger = models.CharField(max_length=20, choices=Trigger, default=Trigger.MESSAGE)
    context_type = models.CharField(
        max_length=40, blank=True, default="", db_default="", help_text="Mode of the prompt, such as agent_check_in"
    )
    reason = models.CharField(max_length=40, blank=True, default="", db_default="", help_text="Why it ended")
    error = models.TextField(blank=True, default="", db_default="")
    step = models.PositiveIntegerField(default=0, db_default=0)
    input_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    output_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    written_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    cost = models.DecimalField(
        max_digits=18, decimal_places=9, default=Decimal(0), db_default=Decimal(0), help_text="US dollars, known part"
    )
    cost_known = models.BooleanField(default=True, db_default=True, help_text="False when some call had no price")
    charged = models.DecimalField(
        max_digits=18,
        decimal_places=9,
        default=Decimal(0),
        db_default=Decimal(0),
        help_text="What budgets count: the cost, and the worst of calls whose cost is unknown",
    )
    charged_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    booked = models.DecimalField(
        max_digits=18, decimal_places=9, default=Decimal(0), db_default=Decimal(0), help_text="Of that, in the budgets"
    )
    booked_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    held = models.DecimalField(
        max_digits=18,
        decimal_places=9,
        default=Decimal(0),
        db_default=Decimal(0),
        help_text="Beyond what is booked: what the run may have spent at most before it asks for more",
    )
    held_tokens = models.PositiveBigIntegerField(default=0, db_default=0)
    metered = models.BooleanField(
        default=False, db_default=False, help_text="Budgets count it; not all that is charged need be booked yet"
    )
    fence = models.PositiveBigIntegerField(default=0, db_default=0)
    lease_token = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    due_at = models.DateTimeField(null=True)
    recoveries = models.PositiveIntegerField(default=0, db_default=0)
    guard = models.JSONField(default=dict, db_default={}, help_text="agents.engine.loop_guard.LoopGuard")
    retries = models.PositiveIntegerField(default=0, db_default=0, help_text="Longer waits for the model in this step")
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = RunQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["thread"], condition=Q(status__in=LIVE), name="one_live_run_per_thread"),
        ]
        indexes = [
            models.Index(fields=["thread", "-created_at"]),
            models.Index(fields=["status"], condition=Q(status__in=LIVE), name="live_runs"),
            models.Index(fields=["thread"], condition=Q(metered=True), name="metered_runs"),
            models.Index(
                fields=["finished_at"],
                condition=Q(status__in=(RunStatus.SUCCEEDED, RunStatus.FAILED)),
                name="finished_runs",
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.id} ({self.status})"

    @property
    def is_live(self) -> bool:
        return self.status in LIVE


class Source(models.TextChoices):
    USER = "user"
    AGENT = "agent"
    ERROR = "error"


class MessageType(models.TextChoices):
    TEXT = "text"
    TOOL = "tool"


class MessageQuerySet(OwnedQuerySet["ThreadMessage"]):
    owner = "thread__user"

    def said(self) -> Self:
        """What people see as messages: what they wrote and were answered. The rest are steps of the agent's work."""
        spoken = self.filter(source__in=[Source.USER, Source.AGENT], message_type=MessageType.TEXT)
        return spoken.exclude(metadata__has_any_keys=["interim", "task", "schedule"])

    def unanswered(self) -> Self:
        """Questions of agents after which their user has said nothing; a decision about a call says nothing of them."""
        later = ThreadMessage.objects.filter(
            thread=OuterRef("thread"), source=Source.USER, position__gt=OuterRef("position")
        ).exclude(metadata__has_any_keys=["decision", "restarts"])
        return self.filter(~Exists(later), metadata__has_key="asks")


class ThreadMessage(models.Model):
    """One entry that the user sees. A tool message only points to its action; results live in the history.

    `position` orders the thread; `processed` is true once a run has taken the message up (user messages only).
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="messages", db_index=False)
    run = models.ForeignKey(AgentRun, models.SET_NULL, null=True, related_name="messages")
    position = models.BigIntegerField(db_default=RawSQL("nextval('memory_message_position')", []), editable=False)
    source = models.CharField(max_length=10, choices=Source)
    message_type = models.CharField(max_length=10, choices=MessageType, default=MessageType.TEXT)
    content = models.TextField(blank=True, default="")
    metadata = models.JSONField(default=dict, blank=True, db_default={}, help_text="memory.metadata.MessageMetadata")
    processed = models.BooleanField(default=True, db_default=True)
    client_message_id = models.UUIDField(null=True)
    created_at = models.DateTimeField(db_default=Now())

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "client_message_id"], name="one_message_per_client_id"),
        ]
        indexes = [
            models.Index(fields=["thread", "position"]),
            models.Index(fields=["thread"], condition=Q(processed=False), name="waiting_messages"),
            models.Index(fields=["thread"], condition=Q(metadata__has_key="asks"), name="questions"),
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.message_type} {self.id}"


class HistoryEntry(models.Model):
    """One row of llm_history: what the model sees. Append-only; `seq` orders it within its thread.

    `quarantine` is a mark beside the row, never a change of it: a server refused the entry, so the model sees it as
    plain as the mark says. Without the mark it is seen whole again.
    """

    id = models.BigAutoField(primary_key=True)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="llm_history", db_index=False)
    run = models.ForeignKey(AgentRun, models.SET_NULL, null=True, related_name="+")
    seq = models.PositiveIntegerField()
    role = models.CharField(max_length=10)
    blocks = models.JSONField(help_text="memory.messages.Block, a list")
    quarantine = models.CharField(
        max_length=10, blank=True, default="", db_default="", help_text="memory.degrade.Rung; empty: seen as it is"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["seq"]
        verbose_name_plural = "history entries"
        constraints = [models.UniqueConstraint(fields=["thread", "seq"], name="one_entry_per_place")]
        indexes = [models.Index(fields=["thread", "seq"], condition=~Q(quarantine=""), name="entries_in_quarantine")]

    def __str__(self) -> str:
        return f"{self.seq} {self.role}"
