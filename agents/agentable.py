"""What an agent can be put to work on. Kinds differ by these hooks, never by type checks."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final
from uuid import UUID
from xml.sax.saxutils import escape

from django.apps import apps
from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models.functions import Now
from django.utils.module_loading import import_string

from memory.ids import new_id
from memory.models import RunStatus, Thread
from memory.text import clip
from tools.base import Audience, Needs

CHECK_IN: Final = "agent_check_in"
"""Context type of a run that the clock has begun: what it says is posted only where it uses a tool to say it."""
FEED: Final = "feed_generation"
"""Context type of a run that writes the feed (mission A13). Its session is archived right after."""
UNPROMPTED: Final = frozenset({CHECK_IN, FEED})
"""Nobody has asked for those runs, and nobody waits for their last words."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends although the model would go on. `history_entries` None means no limit."""

    iterations: int
    seconds: float
    same_tool: int
    failures: int
    history_entries: int | None = None


@dataclass(frozen=True, slots=True)
class Ahead:
    """What an agent will do by itself. said: when, in words. own: the id of what it has set itself, and may drop.
    paused: not before its user resumes it."""

    said: str
    intent: str
    own: UUID | None = None
    paused: bool = False

    def told(self) -> str:
        """For the agent: a line."""
        paused, own = " (paused by the user)" if self.paused else "", f" (yours, id {self.own})" if self.own else ""
        return f"- {self.said}{paused}: {clip(self.intent, 300) or 'look in'}{own}"


class Agentable(models.Model):
    """Abstract: owner, thread, and the hooks by which the engine drives any kind of agent.

    has_sessions: whether its history is archived, after which a new session begins.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    thread = models.OneToOneField(Thread, models.CASCADE, related_name="%(app_label)s_%(class)s")
    created_at = models.DateTimeField(db_default=Now())

    user: "models.ForeignKey[User, User] | models.OneToOneField[User, User]"
    user_id: int

    prompt: ClassVar[str] = ""
    audience: ClassVar[Audience] = Audience.CONVERSATION
    remembers: ClassVar[bool] = True
    """Whether it is told of the notes and learnings of its conversation."""
    reschedules: ClassVar[bool] = True
    """Whether a run waits by itself for a model that fails for minutes; else it ends, and the agent pauses."""
    has_sessions: ClassVar[bool] = True
    has: ClassVar[frozenset[Needs]] = frozenset()
    """What every agent of the kind has, of that which tools need."""

    class Meta:
        abstract = True

    @classmethod
    def kind(cls) -> str:
        """The name by which a Thread finds its Agentable, such as goals.goal."""
        return cls._meta.label_lower

    def name(self) -> str:
        raise NotImplementedError

    def briefing(self) -> dict[str, object]:
        """Variables of this kind's prompt template, beside those that every prompt has."""
        return {}

    def written(self) -> str:
        """What its owner has written about it, and no model ever changes; addresses in it may be opened
        (`tools.seen`)."""
        return ""

    def prompt_for(self, context_type: str) -> tuple[str, dict[str, object]]:
        """The prompt template and its variables for a run of that context type (mission A6); empty is the usual one."""
        return self.prompt, self.briefing()

    def tool_modes(self) -> Mapping[str, str]:
        """The modes (`tools.policy.Mode`) that the owner has set for tools here, by their names."""
        return {}

    def tool_packs(self) -> Collection[str]:
        """The packs of tools (`tools.base.Pack`) that the owner has switched on here."""
        return ()

    def trusted_as(self) -> UUID:
        """The thread of the agent whose standing words (`tools.trust`) hold here."""
        return self.thread_id

    def remembered(self) -> Mapping[str, str]:
        """Sections of the context by name, each as lines; empty when there is nothing (any more). The model is told of
        one when it has changed (`memory.context`). A kind adds its own."""
        return {"schedule": escape("\n".join(each.told() for each in self.ahead()))}

    def address(self) -> str:
        """Of the page with its conversation; empty when it has none."""
        return ""

    def beside(self) -> str:
        """HTML of this kind's own, at the top of the panel beside its conversation."""
        return ""

    def ahead(self) -> Sequence[Ahead]:
        """What it will do by itself, whenever that is; for those who look on, and for itself. The clock that all kinds
        go by is named in `AGENT_AHEAD`."""
        by_the_clock: Sequence[Ahead] = import_string(settings.AGENT_AHEAD)(self.thread_id)
        return by_the_clock

    def limits(self, context_type: str = "") -> Limits:
        """
        Args:
            context_type: of the run; what the clock begins may take few calls of the model (missions A12 and A13).
        """
        few = {CHECK_IN: settings.WAYMARK_CHECK_IN_CALLS, FEED: settings.WAYMARK_FEED_CALLS}
        return Limits(
            min(few.get(context_type, settings.WAYMARK_MAX_ITERATIONS), settings.WAYMARK_MAX_ITERATIONS),
            settings.WAYMARK_MAX_SECONDS,
            settings.WAYMARK_MAX_SAME_TOOL,
            settings.WAYMARK_MAX_FAILURES,
        )

    def connection_id(self) -> UUID | None:
        """The connection to the model chosen for this agent alone; None means the user's default."""
        return None

    def reports_to(self) -> Thread | None:
        """The thread that is told when a run of this agent settles."""
        return None

    def settled(self, status: RunStatus, report: str, resume_after: float | None = None) -> bool:
        """Called in the transaction that ends a run of an agent that reports to another.

        Args:
            resume_after: seconds after which it makes sense to go on; None when nothing is known to pass by itself.

        Returns:
            Whether the other is to be told.
        """
        return True


class Trusting(Agentable):
    """Abstract: an agent whose owner says how far each tool is trusted with it.

    modes: `tools.policy.Mode` by the names of tools; those that are missing have their usual mode.
    """

    user_id: int
    modes = models.JSONField(default=dict, blank=True, db_default={}, help_text="tools.policy.Mode, by names of tools")

    class Meta:
        abstract = True

    def tool_modes(self) -> Mapping[str, str]:
        modes: Mapping[str, str] = self.modes
        return modes


def agent_kinds() -> list[type[Agentable]]:
    return [import_string(path) for path in settings.AGENT_KINDS]


def agentable_of(thread: Thread) -> Agentable:
    """Load the Agentable that a thread belongs to, whichever app it lives in."""
    model = apps.get_model(thread.kind)
    agentable = model._default_manager.select_related("user").get(thread_id=thread.pk)
    assert isinstance(agentable, Agentable)
    return agentable
