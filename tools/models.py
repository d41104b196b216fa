"""The record of everything that agents do."""

from typing import Self
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now

import tools.file_models
import tools.mcp.models
import tools.part_models  # noqa: F401  where Django looks for them
from memory.ids import new_id
from memory.keyset import Order
from memory.models import AgentRun, OwnedQuerySet, Thread
from tools.base import Effect, Reversal, Risk
from tools.restoring import all_restorers


class ActionStatus(models.TextChoices):
    """INTENT: to be answered in its step. PROPOSED: answered as "waits for approval"; it may still be carried out."""

    INTENT = "intent"
    PROPOSED = "proposed"
    STARTED = "started"
    DONE = "done"
    ERROR = "error"
    DENIED = "denied"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


OPEN = (ActionStatus.INTENT, ActionStatus.STARTED)
UNRESOLVED = models.Q(status=ActionStatus.UNKNOWN, resolution="")
"""Nobody knows what became of it, and nobody has said so yet."""
NEWEST_FIRST = Order(("created_at", "step", "position", "id"), descending=True)


class Resolution(models.TextChoices):
    """What became of an unknown outcome, and how that is known."""

    HAPPENED = "happened"
    RUN_AGAIN = "run_again"
    CHECKED = "checked"


def of_agent(thread_id: UUID) -> models.Q:
    """Actions or approvals of an agent and of the helpers that it has sent off."""
    return models.Q(thread=thread_id) | models.Q(thread__agents_agenttask__parent=thread_id)


def agent_of(thread: Thread) -> UUID:
    """The thread of the agent that a thread belongs to: a helper's is that of who sent it off."""
    task = getattr(thread, "agents_agenttask", None)
    agent: UUID = task.parent_id if task else thread.pk
    return agent


def reversible() -> models.Q:
    """Actions that changed something which is known how to put back; what was changed since is seen then."""
    changed = models.Q(status=ActionStatus.DONE, undone=False, undo__changes__0__isnull=False)
    for restorer in all_restorers().values():
        changed &= ~restorer.settled()
    return changed


class ActionQuerySet(OwnedQuerySet["AgentAction"]):
    def proposed(self) -> Self:
        """Those that wait for a decision beside the conversation."""
        return self.filter(status=ActionStatus.PROPOSED, approval__state=ApprovalState.REQUESTED)

    def with_standing(self) -> Self:
        """With `reversible`: whether there is a way back from it, and of what was undone `taken_back`: the undo that
        holds, and `repeatable`: whether that can be taken back in turn. Without what was changed, which may be
        long."""
        changed = reversible()
        holds = AgentAction.objects.filter(undoes=models.OuterRef("pk"), undone=False).order_by("-created_at")
        return self.annotate(
            reversible=models.Case(models.When(changed, then=True), default=False),
            taken_back=models.Subquery(holds.values("pk")[:1]),
            repeatable=models.Exists(holds.filter(changed)),
        ).defer("undo")


class AgentAction(models.Model):
    """One tool call: journal, audit, approval target and undo record in one row.

    The id is deterministic (uuid5 of run, step, index), so that a row can be read again after a connection was lost
    at its commit. PostgreSQL refuses to change what is final, or to delete it but with its thread (threat T19,
    `tools/migrations/0006_append_only.py`): a new column needs a rule there.
    """

    id = models.UUIDField(primary_key=True, editable=False)
    run = models.ForeignKey(
        AgentRun, models.CASCADE, null=True, related_name="actions", db_index=False, help_text="None: a person did it"
    )
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="actions")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="actions", db_index=False)
    step = models.PositiveIntegerField()
    position = models.PositiveIntegerField(help_text="Index of the call in its reply")
    call_id = models.TextField(help_text="The model's own id of the call")
    tool = models.CharField(max_length=100)
    effect = models.CharField(max_length=20, choices=[(e.value, e.value) for e in Effect])
    risk = models.CharField(max_length=20, choices=[(r.value, r.value) for r in Risk])
    reversal = models.CharField(max_length=20, choices=[(r.value, r.value) for r in Reversal])
    arguments = models.JSONField(help_text="As the model gave them; validated by the tool's own schema")
    status = models.CharField(max_length=20, choices=ActionStatus, default=ActionStatus.INTENT)
    summary = models.TextField(blank=True, default="", db_default="")
    output = models.TextField(blank=True, default="", db_default="")
    error = models.TextField(blank=True, default="", db_default="")
    undo = models.JSONField(null=True, blank=True, help_text="What it changed (tools.changes.UndoRecord)")
    undone = models.BooleanField(default=False, db_default=False)
    undoes = models.ForeignKey(
        "self", models.CASCADE, null=True, related_name="undone_by", db_index=False, help_text="What this takes back"
    )
    fence = models.PositiveBigIntegerField(default=0)
    repeats = models.ForeignKey(
        "self",
        models.CASCADE,
        null=True,
        related_name="repeated_by",
        db_index=False,
        help_text="The unknown call that this one repeats, or the one that its user has changed",
    )
    resolution = models.CharField(max_length=20, choices=Resolution, blank=True, default="", db_default="")
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    resolved_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = ActionQuerySet.as_manager()

    class Meta:
        db_table = "agent_actions"
        ordering = ["created_at", "step", "position"]
        constraints = [models.UniqueConstraint(fields=["run", "step", "position"], name="one_action_per_call")]
        indexes = [
            models.Index(fields=["user", "-created_at"]),
            models.Index(fields=["-created_at"], name="actions_by_time"),
            models.Index(fields=["thread"], condition=models.Q(status="proposed"), name="proposed_actions"),
            models.Index(fields=["user"], condition=models.Q(status="unknown", resolution=""), name="open_questions"),
            models.Index(fields=["repeats"], condition=models.Q(repeats__isnull=False), name="repeating_actions"),
            models.Index(fields=["undoes"], condition=models.Q(undoes__isnull=False), name="undoing_actions"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} ({self.status})"


class ApprovalState(models.TextChoices):
    REQUESTED = "requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class Cause(models.TextChoices):
    """Why a call needs a person's word."""

    RESTRICTED = "restricted", "the tool always asks"
    CHOSEN = "chosen", "its user wants to be asked"
    UNTRUSTED = "untrusted", "its agent has read text of strangers"
    EDITED = "edited", "its user has changed it"
    REPEATS_UNKNOWN = "repeats_unknown", "it repeats a call whose outcome is unknown"


class ApprovalQuerySet(OwnedQuerySet["Approval"]):
    def waiting(self) -> Self:
        """Those that can still be decided."""
        return self.filter(state=ApprovalState.REQUESTED, expires_at__gt=Now())


class Approval(models.Model):
    """A recorded call that waits for a person's word (mission D9, reliability D4).

    `digest` is of the tool and the arguments as they were shown; a decision names it, so that nobody can approve what
    they have not seen. `state` leaves REQUESTED exactly once.
    """

    TARGET_LENGTH = 80

    action = models.OneToOneField(AgentAction, models.CASCADE, primary_key=True, related_name="approval")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="approvals", db_index=False)
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="approvals", db_index=False)
    state = models.CharField(max_length=20, choices=ApprovalState, default=ApprovalState.REQUESTED)
    cause = models.CharField(max_length=20, choices=Cause, default=Cause.RESTRICTED)
    digest = models.CharField(max_length=64)
    target = models.CharField(  # noqa: DJ001  empty is another thing than unknown
        max_length=TARGET_LENGTH,
        null=True,
        help_text="tools.approvals.target, when it was asked; None: of before that was kept",
    )
    sources = models.JSONField(
        default=list, blank=True, db_default=[], help_text="Whose texts its agent had read (memory.marks)"
    )
    requested_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", db_index=False
    )
    decided_at = models.DateTimeField(null=True)
    reason = models.TextField(blank=True, default="", db_default="")
    seen = models.CharField(
        max_length=64, blank=True, default="", db_default="", help_text="tools.signature.shown, when it was approved"
    )

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["-requested_at"]
        indexes = [
            models.Index(fields=["user", "-requested_at"]),
            models.Index(
                fields=["thread"],
                condition=models.Q(state__in=[ApprovalState.REQUESTED, ApprovalState.APPROVED]),
                name="thread_approvals",
            ),
            models.Index(
                fields=["expires_at"], condition=models.Q(state=ApprovalState.REQUESTED), name="due_approvals"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action_id} ({self.state})"


class Trust(models.Model):
    """A standing word: calls of one tool by one agent run without asking, until then (`tools.trust`).

    digest: of the only call that it covers; empty when it covers all. arguments: of that call, for people.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="trusts")
    thread = models.ForeignKey(Thread, models.CASCADE, related_name="trusts", db_index=False)
    tool = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, blank=True, default="", db_default="")
    arguments = models.JSONField(null=True)
    granted_at = models.DateTimeField(db_default=Now())
    until = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    why_revoked = models.TextField(blank=True, default="", db_default="")

    objects = OwnedQuerySet["Trust"].as_manager()

    class Meta:
        ordering = ["-granted_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["thread", "tool", "digest"],
                condition=models.Q(revoked_at__isnull=True),
                name="one_standing_word_each",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} until {self.until:%Y-%m-%d}"


def asked_of(user: User) -> models.QuerySet[AgentAction, UUID]:
    """The ids of calls that ask their user something: whether they may run, or what became of them. Two short lists out
    of indexes of their own: every page counts them."""
    unknown = AgentAction.objects.for_user(user).filter(UNRESOLVED).order_by()
    waiting = Approval.objects.for_user(user).waiting().order_by()
    return unknown.values_list("pk", flat=True).union(waiting.values_list("pk", flat=True), all=True)
