"""What models have cost: summed by model, day, month or agent, for one user or for everybody (mission C4).

`cost` is the known part in US dollars. What is not known is counted beside it (`unpriced`), never summed up as zero.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import astuple, dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from django.apps import apps
from django.contrib.auth.models import User
from django.db.models import Count, DateField, F, Q, QuerySet, Sum
from django.db.models.functions import TruncDate, TruncMonth

from agents.agentable import Agentable
from agents.models import AgentTask, CallStatus, ModelCall
from memory.models import Thread

# A call that was begun and never sent, for want of money or because its run was stopped or handed over before.
_UNSENT = Q(status=CallStatus.CANCELLED, cost=0, input_tokens=None) & (Q(latency_ms=None) | Q(latency_ms=0))

# The paths from a call to its user, with those to its thread: of a step of a run, of a call beside the runs, and of an
# agent that was deleted, which has no thread any more.
PATHS = {"run__thread__user": "run__thread_id", "thread__user": "thread_id", "user": "thread_id"}


@dataclass(frozen=True, slots=True)
class Spent:
    """`cost` is the known part in US dollars; `known` is false when a call had no price."""

    cost: Decimal
    known: bool


def beside_runs(user: User, since: datetime) -> Spent:
    """What was spent on summaries and the like, and by agents that were deleted; runs count their own calls."""
    calls = ModelCall.objects.filter(Q(thread__user=user) | Q(user=user), run=None, created_at__gte=since)
    unpriced = Count("pk", filter=Q(cost=None) & ~Q(status=CallStatus.STARTED))
    sums = calls.aggregate(spent=Sum("cost"), unpriced=unpriced)
    return Spent(sums["spent"] or Decimal(0), not sums["unpriced"])


@dataclass(frozen=True, slots=True)
class Spending:
    """What some finished calls came to. A call counts when it was sent.

    unpriced: how many of unknown cost. estimated: how many whose tokens are our own guess. partial: how many that
    broke off, so that more may have been used. input: all tokens of it; cached and written are parts of that.
    """

    calls: int = 0
    unpriced: int = 0
    estimated: int = 0
    partial: int = 0
    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    cost: Decimal = Decimal(0)

    def __add__(self, other: Self) -> Self:
        return type(self)(*(mine + others for mine, others in zip(astuple(self), astuple(other), strict=True)))


class By(StrEnum):
    """What a sum is of."""

    MODEL = "model"
    DAY = "day"
    MONTH = "month"
    AGENT = "goal"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Period:
    """From `since` until just before `until`; days and months are those of `zone`."""

    since: datetime
    until: datetime
    zone: tzinfo


type Sums = dict[tuple[Any, ...], Spending]


def spent(by: By, period: Period, user: User | None = None) -> Sums:
    """Sum up by one thing; the key is (kind, model), (day,), (first of the month,), (thread,) or (e-mail,). What agents
    have cost that were deleted has no thread: its key is (None,).

    user: whose calls; None is everybody's, for staff.
    """
    sums: defaultdict[tuple[Any, ...], Spending] = defaultdict(Spending)
    for path in PATHS:
        for *key, spending in _rows(_calls(path, period, user), _keys(by, path, period.zone)):
            sums[tuple(key)] += spending
    return dict(sums)


def spent_since(user: User, since: datetime) -> Spending:
    """All that a user's agents have come to since a moment, also those that sum up, and those deleted since."""
    return total(spent(By.USER, Period(since, datetime.max.replace(tzinfo=UTC), UTC), user))


def _calls(path: str, period: Period, user: User | None) -> QuerySet[ModelCall]:
    whose = {f"{path}__isnull": False} if user is None else {path: user}
    calls = ModelCall.objects.filter(created_at__gte=period.since, created_at__lt=period.until, **whose)
    return calls.exclude(status=CallStatus.STARTED).exclude(_UNSENT).order_by()


def _keys(by: By, path: str, zone: tzinfo) -> dict[str, Any]:
    match by:
        case By.MODEL:
            return {"key_kind": F("provider"), "key_model": F("model")}
        case By.DAY:
            return {"key": TruncDate("created_at", tzinfo=zone)}
        case By.MONTH:
            return {"key": TruncMonth("created_at", tzinfo=zone, output_field=DateField())}
        case By.AGENT:
            return {"key": F(PATHS[path])}
        case By.USER:
            return {"key": F(f"{path}__email")}


def _rows(calls: QuerySet[ModelCall], keys: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    broken = Q(status__in=(CallStatus.FAILED, CallStatus.CANCELLED), output_tokens__gt=0)
    rows = calls.annotate(**keys).values_list(*keys)
    for row in rows.annotate(
        n=Count("pk"),
        unpriced=Count("pk", filter=Q(cost=None)),
        guessed=Count("pk", filter=Q(estimated=True)),
        partial=Count("pk", filter=broken),
        tokens_in=Sum("input_tokens", default=0),
        tokens_cached=Sum("cached_tokens", default=0),
        tokens_written=Sum("written_tokens", default=0),
        tokens_out=Sum("output_tokens", default=0),
        dollars=Sum("cost", default=Decimal(0)),
    ):
        *key, n, unpriced, guessed, partial, read, cached, written, out, dollars = row
        yield *key, Spending(n, unpriced, guessed, partial, int(read), int(cached), int(written), int(out), dollars)


def owners(threads: Collection[UUID]) -> dict[UUID, Agentable]:
    """Return for each thread whose it is; a task's is that of the agent which sent it off."""
    parents = dict(AgentTask.objects.filter(thread__in=threads).values_list("thread_id", "parent_id"))
    roots = {parents.get(thread, thread) for thread in threads}
    by_kind: defaultdict[str, list[UUID]] = defaultdict(list)
    for thread, kind in Thread.objects.filter(pk__in=roots).values_list("pk", "kind"):
        by_kind[kind].append(thread)
    found: dict[UUID, Agentable] = {}
    for kind, ids in by_kind.items():
        agents = apps.get_model(kind)._default_manager.filter(thread__in=ids).select_related("user")
        found |= {agent.thread_id: agent for agent in agents}
    return {thread: found[root] for thread in threads if (root := parents.get(thread, thread)) in found}


def by_owner(sums: Sums) -> dict[Agentable, Spending]:
    """Put the sums of By.AGENT together, each agent with its tasks; those of the deleted belong to none."""
    threads = [thread for (thread,) in sums if thread]
    together: defaultdict[Agentable, Spending] = defaultdict(Spending)
    for thread, owner in owners(threads).items():
        together[owner] += sums[thread,]
    return dict(together)


def total(sums: Mapping[Any, Spending]) -> Spending:
    return sum(sums.values(), Spending())
