"""Rows for tests, made through services where a service makes them."""

# mypy: disable-error-code="no-untyped-call"

import hashlib
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.hashers import get_hasher, make_password
from django.contrib.auth.models import User
from django.db.models import Model
from django.utils import timezone
from factory.declarations import LazyAttribute, LazyFunction, SelfAttribute, Sequence, SubFactory
from factory.django import DjangoModelFactory

from agents import services, tokens
from agents.budgets.models import Budget
from agents.connecting import Given, connect_model
from agents.models import (
    AgentTask,
    CallStatus,
    DeviceToken,
    HealthReport,
    ModelCall,
    ModelConnection,
    ModelPrice,
    UserAgent,
)
from goals.models import (
    Feed,
    FeedItem,
    Goal,
    ItemKind,
    Measurement,
    Notice,
    PushDevice,
    Receipt,
    Schedule,
    ScheduleKind,
    Target,
)
from goals.services import create_goal
from memory.ids import new_id
from memory.models import (
    AgentHistory,
    AgentRun,
    ArchiveReason,
    ArchiveStatus,
    Attachment,
    Author,
    Document,
    HistoryEntry,
    Learning,
    Note,
    RunStatus,
    Skill,
    Source,
    Thread,
    ThreadMessage,
)
from tools.base import Effect, Reversal, Risk
from tools.mcp.models import McpServer
from tools.models import ActionStatus, AgentAction, Approval
from tools.part_models import Assessment, Part, Proposal
from tools.parts import Attributes
from tools.signature import digest

SAID_AT = "2026-01-01T00:00:00Z"
PASSWORD = "a long enough pass phrase"


class Made[M: Model](DjangoModelFactory[M]):
    """Calling a factory gives what it makes, which the type checker cannot see through its metaclass."""

    if TYPE_CHECKING:

        def __new__(cls, **fields: Any) -> Any: ...


class UserFactory(Made[User]):
    """Its password is PASSWORD; `staff=True` makes one who may do everything."""

    class Meta:
        model = User
        skip_postgeneration_save = True

    username = Sequence(lambda n: f"person{n}")
    email = LazyAttribute(lambda user: f"{user.username}@example.org")

    @classmethod
    def _create(cls, model_class: type[User], *args: Any, **kwargs: Any) -> User:
        if kwargs.pop("staff", False):
            kwargs |= {"is_staff": True, "is_superuser": True}
        return User.objects.create(password=_hashed(get_hasher().algorithm), **kwargs)


@cache
def _hashed(algorithm: str) -> str:
    """Hashing is slow on purpose; one hash of the same password serves all."""
    return make_password(PASSWORD, hasher=algorithm)


class GoalFactory(Made[Goal]):
    class Meta:
        model = Goal

    user = SubFactory(UserFactory)
    title = Sequence(lambda n: f"Goal {n}")

    @classmethod
    def _create(cls, model_class: type[Goal], *args: Any, **kwargs: Any) -> Goal:
        return create_goal(**kwargs)


class ThreadFactory(Made[Thread]):
    """The thread of a new goal."""

    class Meta:
        model = Thread

    user = SubFactory(UserFactory)

    @classmethod
    def _create(cls, model_class: type[Thread], *args: Any, **kwargs: Any) -> Thread:
        return GoalFactory(user=kwargs["user"]).thread


class FeedItemFactory(Made[FeedItem]):
    """Of a feed that was written today."""

    class Meta:
        model = FeedItem

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    place = Sequence(lambda n: n)
    kind = ItemKind.PROGRESS
    title = Sequence(lambda n: f"Item {n}")

    @classmethod
    def _create(cls, model_class: type[FeedItem], *args: Any, **kwargs: Any) -> FeedItem:
        now, user = timezone.now(), kwargs["user"]
        written = {"brief": kwargs["title"], "written_at": now, "since": now, "until": now}
        feed, _ = Feed.objects.get_or_create(
            user=user, day=now.date(), defaults={**written, "thread": services.assistant_of(user).thread}
        )
        return FeedItem.objects.create(feed=feed, **kwargs)


class NoticeFactory(Made[Notice]):
    class Meta:
        model = Notice

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    kind = "finished"
    subject = LazyFunction(new_id)
    said = Sequence(lambda n: f"Answer {n}")
    at = LazyFunction(timezone.now)


class ReceiptFactory(Made[Receipt]):
    """Of a mail that was sent."""

    class Meta:
        model = Receipt

    notice = SubFactory(NoticeFactory)
    channel = "mail"
    state = "sent"
    at = LazyFunction(timezone.now)
    created_at = SelfAttribute("at")


class PushDeviceFactory(Made[PushDevice]):
    class Meta:
        model = PushDevice

    user = SubFactory(UserFactory)
    name = "Browser"
    digest = Sequence(lambda n: hashlib.sha256(f"endpoint {n}".encode()).digest())
    sealed = "unreadable"


class AgentRunFactory(Made[AgentRun]):
    """A run that has ended, so that a thread may have many."""

    class Meta:
        model = AgentRun

    thread = SubFactory(ThreadFactory)
    status = RunStatus.SUCCEEDED


class ThreadMessageFactory(Made[ThreadMessage]):
    class Meta:
        model = ThreadMessage

    thread = SubFactory(ThreadFactory)
    source = Source.USER
    content = Sequence(lambda n: f"Message {n}")


class AttachmentFactory(Made[Attachment]):
    """A picture, with bytes that need not be one."""

    class Meta:
        model = Attachment

    message = SubFactory(ThreadMessageFactory)
    thread = SelfAttribute("message.thread")
    place = Sequence(lambda n: n)
    name = Sequence(lambda n: f"picture{n}.png")
    media_type = "image/png"
    size = 4
    sha256 = "0" * 64
    block = LazyFunction(dict)
    content = thumbnail = b"\x89PNG"


class HistoryEntryFactory(Made[HistoryEntry]):
    class Meta:
        model = HistoryEntry

    thread = SubFactory(ThreadFactory)
    seq = Sequence(lambda n: n + 1)
    role = "user"
    blocks = LazyFunction(lambda: [{"type": "text", "text": "hello"}])


class AgentHistoryFactory(Made[AgentHistory]):
    """An archived session; the thread counts it, and its next begins behind it."""

    class Meta:
        model = AgentHistory

    thread = SubFactory(ThreadFactory)
    generation = LazyAttribute(lambda session: session.thread.generation)
    status = ArchiveStatus.DONE
    reason = ArchiveReason.IDLE
    first_seq = LazyAttribute(lambda session: session.thread.from_seq)
    last_seq = LazyAttribute(lambda session: session.first_seq + 1)
    summary = Sequence(lambda n: f"Summary {n}")
    entries = LazyAttribute(
        lambda session: [
            {"seq": session.first_seq, "role": "user", "blocks": [{"type": "text", "text": "Which shoes?"}]},
            {"seq": session.last_seq, "role": "assistant", "blocks": [{"type": "text", "text": "The **blue** ones."}]},
        ]
    )
    text = "User: Which shoes?\nAgent: The blue ones."
    message_count = 2
    started_at = LazyFunction(timezone.now)
    ended_at = LazyFunction(timezone.now)

    @classmethod
    def _create(cls, model_class: type[AgentHistory], *args: Any, **kwargs: Any) -> AgentHistory:
        at = kwargs["ended_at"].isoformat()
        kwargs["entries"] = [{"run": None, "at": at, **entry} for entry in kwargs["entries"]]
        session = AgentHistory.objects.create(**kwargs)
        thread: Thread = kwargs["thread"]
        thread.generation, thread.from_seq = session.generation + 1, session.last_seq + 1
        thread.save(update_fields=["generation", "from_seq"])
        return session


class NoteFactory(Made[Note]):
    class Meta:
        model = Note

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    title = Sequence(lambda n: f"Note {n}")


class ScheduleFactory(Made[Schedule]):
    class Meta:
        model = Schedule

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    kind = ScheduleKind.RECURRING
    rule = "0 8 * * *"
    intent = "Look round."


class TargetFactory(Made[Target]):
    class Meta:
        model = Target

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    name = "Weight"
    value = 60
    deadline = date(2030, 1, 1)


class MeasurementFactory(Made[Measurement]):
    class Meta:
        model = Measurement

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    value = 63.5
    day = date(2026, 1, 1)


class DocumentFactory(Made[Document]):
    """The memory of an agent."""

    class Meta:
        model = Document

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    name = "MEMORY"
    author = edited_by = Author.AGENT


class SkillFactory(Made[Skill]):
    """One that is on."""

    class Meta:
        model = Skill

    user = SubFactory(UserFactory)
    name = Sequence(lambda n: f"skill-{n}")
    description = "How it is done."
    text = LazyAttribute(lambda made: f"---\nname: {made.name}\ndescription: {made.description}\n---\n\nDo it so.")
    is_on = True


class LearningFactory(Made[Learning]):
    class Meta:
        model = Learning

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    number = LazyAttribute(lambda made: Learning.objects.filter(thread=made.thread).count() + 1)
    text = Sequence(lambda n: f"Learning {n}")
    author = Author.AGENT


class PartFactory(Made[Part]):
    """With evidence that nobody has looked at."""

    class Meta:
        model = Part

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    name = Sequence(lambda n: f"Part {n}")
    role = "protector"
    attributes = LazyFunction(lambda: Attributes(fears=("being seen",)).model_dump(mode="json"))
    evidence = LazyFunction(lambda: [{"quote": "I hide.", "message": str(new_id()), "said_at": SAID_AT}])


class AssessmentFactory(Made[Assessment]):
    class Meta:
        model = Assessment

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    text = Sequence(lambda n: f"Assessment {n}")


class ProposalFactory(Made[Proposal]):
    class Meta:
        model = Proposal

    thread = SubFactory(ThreadFactory)
    user = SelfAttribute("thread.user")
    text = Sequence(lambda n: f"Proposal {n}")


class AgentActionFactory(Made[AgentAction]):
    class Meta:
        model = AgentAction

    id = LazyFunction(new_id)
    run = SubFactory(AgentRunFactory)
    thread = SelfAttribute("run.thread")
    user = SelfAttribute("run.thread.user")
    step = 1
    position = Sequence(lambda n: n)
    call_id = Sequence(lambda n: f"call_{n}")
    tool = "create_note"
    effect = Effect.LOCAL
    risk = Risk.ALLOWED
    reversal = Reversal.UNDOABLE
    arguments = LazyFunction(lambda: {"title": "Shoes"})
    status = ActionStatus.DONE


class McpServerFactory(Made[McpServer]):
    class Meta:
        model = McpServer

    user = SubFactory(UserFactory)
    name = Sequence(lambda n: f"server{n}")
    url = "https://tools.example.org/mcp"


class ApprovalFactory(Made[Approval]):
    """A proposed call, which waits."""

    class Meta:
        model = Approval

    action = SubFactory(AgentActionFactory, status=ActionStatus.PROPOSED, risk=Risk.RESTRICTED)
    user = SelfAttribute("action.user")
    thread = SelfAttribute("action.thread")
    digest = LazyAttribute(lambda approval: digest(approval.action.tool, approval.action.arguments))
    expires_at = LazyFunction(lambda: timezone.now() + timedelta(days=1))


class ModelCallFactory(Made[ModelCall]):
    class Meta:
        model = ModelCall

    run = SubFactory(AgentRunFactory)
    step = 1
    provider = "demo"
    model = "demo"
    status = CallStatus.DONE


class BudgetFactory(Made[Budget]):
    class Meta:
        model = Budget

    user = SubFactory(UserFactory)
    money = Decimal(20)


class AgentTaskFactory(Made[AgentTask]):
    class Meta:
        model = AgentTask

    parent = SubFactory(ThreadFactory)
    user = SelfAttribute("parent.user")
    thread = LazyAttribute(lambda task: services.open_thread(task.user, AgentTask.kind()))
    title = Sequence(lambda n: f"Task {n}")
    instructions = "Look it up."


class UserAgentFactory(Made[UserAgent]):
    class Meta:
        model = UserAgent

    user = SubFactory(UserFactory)

    @classmethod
    def _create(cls, model_class: type[UserAgent], *args: Any, **kwargs: Any) -> UserAgent:
        return services.assistant_of(kwargs["user"])


class HealthReportFactory(Made[HealthReport]):
    class Meta:
        model = HealthReport

    at = LazyFunction(timezone.now)
    name = "stuck_runs"
    examples = LazyFunction(lambda: ["run 1"])


class ModelConnectionFactory(Made[ModelConnection]):
    class Meta:
        model = ModelConnection

    user = SubFactory(UserFactory)
    kind = "openai"
    model = "gpt-5-mini"
    sealed_key = "sealed-canary"


def think_with(user: User, url: str, key: str = "", kind: str = "compatible") -> None:
    """Let the agents of `user` think with a scripted model server. It is in the own network, where only staff may send
    this server."""
    user.is_staff = True
    user.save(update_fields=["is_staff"])
    connect_model(user, kind, Given("test-model", url, key))


class ModelPriceFactory(Made[ModelPrice]):
    class Meta:
        model = ModelPrice

    user = SubFactory(UserFactory)
    kind = "openai"
    model = "gpt-5-mini"
    input = Decimal("0.25")
    output = Decimal(2)


class DeviceTokenFactory(Made[DeviceToken]):
    class Meta:
        model = DeviceToken

    user = SubFactory(UserFactory)
    name = "Phone"
    digest = Sequence(lambda n: hashlib.sha256(str(n).encode()).digest())


def bearer(user: User) -> dict[str, str]:
    """Headers of a device of `user`."""
    return {"Authorization": f"Bearer {tokens.issue(user)}"}


def nobody() -> UUID:
    """An id that belongs to nothing."""
    return new_id()
