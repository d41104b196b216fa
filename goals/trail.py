"""What home shows: the latest word of each agent, and what a person must decide."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Exists, OuterRef, Q, Sum
from django.utils.translation import gettext as _

from agents.agentable import FEED
from agents.services import NOTICE
from goals.context import Place, month_start
from goals.headline import SHORTEST, headline
from goals.inbox import Question, questions
from goals.updates import Kind, Update
from memory.metadata import MessageMetadata
from memory.models import AgentRun, MessageType, RunStatus, Source, ThreadMessage
from memory.text import without_marks

SHOWN = 12
NEEDS = 3
SPENDERS = 5


@dataclass(frozen=True, slots=True)
class Step:
    """One agent's latest answer. `id` is that of the message, or of the action that is the news; `state` is that of a
    step on the trail."""

    id: UUID
    place: Place
    state: str
    title: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Need:
    """A run that failed and can be tried again, or that waits for more money; a question; or a call that waits for a
    decision.

    message: what was said of it. budget: the one that may be raised, by so many dollars that the run goes on.
    asks: the call; its sentence is the title.
    """

    place: Place | None
    text: str
    message: ThreadMessage | None = None
    state: str = "failed"
    budget: str = ""
    dollars: int = 1
    asks: Question | None = None


def latest_steps(user: User, places: Mapping[UUID, Place], resting: Collection[UUID] = ()) -> list[Step]:
    """The newest answer of each place (by thread), newest first; those that are `resting` are not at work."""
    answers = (
        ThreadMessage.objects.for_user(user)
        .filter(thread__in=places, source=Source.AGENT, message_type=MessageType.TEXT)
        .exclude(metadata__has_any_keys=["interim", "schedule", "feed"])
        .order_by("thread", "-position")
        .distinct("thread")
    )
    steps = [_step(places[answer.thread_id], answer, rests=answer.thread_id in resting) for answer in answers]
    return sorted(steps, key=lambda step: step.at, reverse=True)[:SHOWN]


def with_news(steps: Sequence[Step], news: Mapping[UUID, Sequence[Update]], places: Mapping[UUID, Place]) -> list[Step]:
    """Add a step for each place that has news and no step: the newest of them."""
    answered = {step.place.thread for step in steps}
    more = [_of_update(places[thread], found[0]) for thread, found in news.items() if thread not in answered]
    return sorted([*steps, *more], key=lambda step: step.at, reverse=True)


def _of_update(place: Place, update: Update) -> Step:
    state = {Kind.FAILURE: "failed", Kind.ASKED: "waiting"}.get(update.kind, "done")
    return Step(update.id, place, state, update.said, update.text, update.at)


def needs(user: User, places: Mapping[UUID, Place]) -> list[Need]:
    """NEEDS calls that wait for the person's word, as many questions, runs that wait for money, then threads whose last
    word is an error that may be tried again, and where nothing runs. Of a feed that is said elsewhere."""
    return _asked(user, places) + _questions(user, places) + _waits(user, places) + _failures(user, places)


def _asked(user: User, places: Mapping[UUID, Place]) -> list[Need]:
    return [
        Need(each.place, each.card.stakes or each.card.why, state="waiting", asks=each)
        for each in questions(user, places, NEEDS)
    ]


def _questions(user: User, places: Mapping[UUID, Place]) -> list[Need]:
    open_ones = ThreadMessage.objects.for_user(user).unanswered().filter(thread__in=places)
    newest = open_ones.order_by("thread", "-position").distinct("thread")
    found = sorted(newest, key=lambda message: message.created_at, reverse=True)[:NEEDS]
    words = (" ".join(without_marks(each.content).split()) for each in found)
    return [Need(places[each.thread_id], said, each, "waiting") for each, said in zip(found, words, strict=True)]


def _waits(user: User, places: Mapping[UUID, Place]) -> list[Need]:
    waiting = AgentRun.objects.for_user(user).filter(thread__in=places, status=RunStatus.WAITING_BUDGET)
    runs = list(waiting.order_by("created_at"))
    said = ThreadMessage.objects.filter(run__in=runs, metadata__reason="budget").order_by("run", "-position")
    told = {message.run_id: message for message in said.distinct("run")}
    return [_wait(places[run.thread_id], told.get(run.pk)) for run in runs]


def _wait(place: Place, told: ThreadMessage | None) -> Need:
    if told is None:
        return Need(place, _("It waits for its budget."), state="paused")
    metadata = MessageMetadata.model_validate(told.metadata)
    budget = str(metadata.budget) if metadata.more else ""
    return Need(place, told.content, told, "paused", budget, metadata.dollars)


def _failures(user: User, places: Mapping[UUID, Place]) -> list[Need]:
    last = ThreadMessage.objects.for_user(user).exclude(NOTICE).filter(thread__in=places, thread__live_run=None)
    newest = last.order_by("thread", "-position").distinct("thread")
    joined = Exists(ThreadMessage.objects.filter(run=OuterRef("run"), source=Source.USER))
    of_feed = Q(run__context_type=FEED) & ~joined
    told = ThreadMessage.objects.filter(pk__in=newest.values("pk")).exclude(of_feed).select_related("thread")
    return [
        Need(places[message.thread_id], message.content, message)
        for message in told.order_by("thread")
        if message.source == Source.ERROR and message.metadata.get("retryable")
    ]


def _step(place: Place, answer: ThreadMessage, *, rests: bool) -> Step:
    """What came of it since is told elsewhere: an answer stays a good one when the next run fails."""
    stopped = "reason" in answer.metadata
    title, text = headline(answer.content, shortest=0 if stopped else SHORTEST)
    state = "running" if place.state == "working" and not rests else "undone" if stopped else "done"
    return Step(answer.pk, place, state, title, text, answer.created_at)


@dataclass(frozen=True, slots=True)
class Spender:
    """What one agent cost this month; `share` is percent of the whole month."""

    title: str
    cost: Decimal
    share: int


def spenders(user: User, places: Mapping[UUID, Place], total: Decimal) -> list[Spender]:
    """The dearest agents of the month. Threads that the frame does not show (tasks, archived goals) are left out."""
    if not total:
        return []
    runs = AgentRun.objects.for_user(user).filter(thread__in=places, created_at__gte=month_start(), cost__gt=0)
    rows = runs.values_list("thread").annotate(cost=Sum("cost")).order_by("-cost")[:SPENDERS]
    return [Spender(places[thread].title, cost, round(100 * cost / total)) for thread, cost in rows]
