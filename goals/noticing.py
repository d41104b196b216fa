"""Finding what a user is to be told of, and what they need not be told of any more. Nothing in the hot path reports it:
it stands in the tables (mission H10)."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import batched, islice
from typing import Final
from uuid import UUID, uuid5

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import CharField, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _

from agents.agentable import FEED
from agents.live.steps import intention, sentence
from agents.models import AgentTask
from goals.glances import HOME, INBOX
from goals.headline import headline
from goals.notice import OPEN, Glance, Notice, NoticeKind, NoticeQuerySet
from goals.owners import OWNERS, with_actions
from goals.updates import answers
from memory.ids import least_id
from memory.models import AgentRun, RunStatus, ThreadMessage
from memory.text import clip, visible
from tools.models import UNRESOLVED, AgentAction, Approval, agent_of

BATCH: Final = 500
LOOKS_BACK: Final = timedelta(days=1)
"""A run that ended before that, while no worker looked, is not told of."""


def find() -> None:
    """Write down what is to be told and is not yet written down. Whoever looks at the same time writes none twice."""
    found = [*_asked(), *_unknown(), *islice(_short_of_money(), BATCH), *_questions(), *_ended()]
    in_one_order = sorted(found, key=lambda each: (each.kind, each.subject))  # else two clocks wait for each other
    Notice.objects.bulk_create(in_one_order, ignore_conflicts=True)


def settle(user: User | None = None) -> None:
    """Close what was seen, and what does not wait any more; of one user or of all."""
    mine, now = Notice.objects.filter(OPEN, **({"user": user} if user else {})), timezone.now()
    since = Glance.objects.filter(user=OuterRef("user"), at__gte=OuterRef("at"))
    at_place = since.filter(Q(place=HOME) | Q(place=Cast(OuterRef("thread"), CharField())))
    in_inbox = Q(Exists(since.filter(place=INBOX)), kind=NoticeKind.WAITING, run=None)
    _close(mine.filter(Exists(at_place) | in_inbox), seen_at=now)
    _close(mine.filter(~_waits(), kind=NoticeKind.WAITING), settled_at=now)


def forget() -> None:
    """Delete those of long ago, a batch at a time. What still waits stays: it would only be found again."""
    old = Notice.objects.filter(pk__lt=least_id(timezone.now() - timedelta(days=settings.WAYMARK_NOTICE_KEPT_DAYS)))
    over = old.exclude(_waits(), kind=NoticeKind.WAITING).select_for_update(skip_locked=True)
    with transaction.atomic():
        Notice.objects.filter(pk__in=[*over.values_list("pk", flat=True)[:BATCH]]).delete()


def _close(found: NoticeQuerySet, **fields: datetime) -> None:
    """Locked in one order first: else two clocks wait for each other."""
    with transaction.atomic():
        in_one_order = found.order_by("pk").select_for_update(no_key=True)
        if held := [*in_one_order.values_list("pk", flat=True)]:
            Notice.objects.filter(pk__in=held).update(**fields)


def _waits() -> Q:
    return Q(
        Exists(Approval.objects.waiting().filter(pk=OuterRef("subject")))
        | Exists(AgentAction.objects.filter(UNRESOLVED, pk=OuterRef("subject")))
        | Exists(AgentRun.objects.filter(status=RunStatus.WAITING_BUDGET, pk=OuterRef("run")))
        | Exists(ThreadMessage.objects.unanswered().filter(pk=OuterRef("subject")))
    )


def _asked() -> Iterator[Notice]:
    known = _known(NoticeKind.WAITING, OuterRef("user"))
    asked = Approval.objects.waiting().filter(~known, user__is_active=True)
    for approval in with_actions(asked)[:BATCH]:
        yield _of_action(approval.action, approval.requested_at, intention(approval.action))


def _unknown() -> Iterator[Notice]:
    known = _known(NoticeKind.WAITING, OuterRef("user"))
    unknown = AgentAction.objects.filter(UNRESOLVED, ~known, user__is_active=True, finished_at__isnull=False)
    for action in unknown.select_related(*OWNERS).defer("undo", "output")[:BATCH]:
        assert action.finished_at is not None
        yield _of_action(action, action.finished_at, f"{sentence(action)[0]} {intention(action)}")


def _short_of_money() -> Iterator[Notice]:
    """Of each step once: it is tried again every hour, and the next one may come when its user has allowed more."""
    waiting = AgentRun.objects.live().filter(status=RunStatus.WAITING_BUDGET, thread__user__is_active=True)
    for some in batched(waiting.select_related(*OWNERS).iterator(BATCH), BATCH):
        runs = {uuid5(run.pk, f"budget {run.step}"): run for run in some}
        owners = {run.thread.user_id for run in some}
        known = Notice.objects.filter(user__in=owners, kind=NoticeKind.WAITING, subject__in=runs)
        for subject in runs.keys() - {*known.values_list("subject", flat=True)}:
            run = runs[subject]
            told = ThreadMessage.objects.filter(run=run, metadata__reason="budget").order_by("-position").first()
            at = told.created_at if told else timezone.now()
            yield _notice(run, NoticeKind.WAITING, at, _("It waits for its budget."), subject)


def _questions() -> Iterator[Notice]:
    """What agents want to know, as long as nothing was said since."""
    asked = ThreadMessage.objects.unanswered().filter(run__in=_lately())
    known = _known(NoticeKind.WAITING, OuterRef("thread__user"))
    owners = (f"run__{owner}" for owner in OWNERS)
    for question in asked.filter(~known).select_related("run__thread", *owners)[:BATCH]:
        assert question.run is not None
        said = headline(question.content)[0]
        yield _notice(question.run, NoticeKind.WAITING, question.created_at, said, question.pk)


def _lately() -> QuerySet[AgentRun]:
    """Runs that have ended, of agents that people talk with: a helper reports to one of those."""
    ended = AgentRun.objects.filter(finished_at__gt=timezone.now() - LOOKS_BACK, thread__user__is_active=True)
    return ended.exclude(thread__kind=AgentTask.kind()).exclude(context_type=FEED)


def _ended() -> Iterator[Notice]:
    ended = _lately().select_related("thread", *OWNERS)
    owner = OuterRef("thread__user")
    told = Notice.objects.filter(user=owner, kind=NoticeKind.FAILED, thread=OuterRef("thread"))
    told = told.filter(OPEN | Q(at__gte=OuterRef("finished_at")))
    failed = ended.filter(~_known(NoticeKind.FAILED, owner), ~Exists(told), status=RunStatus.FAILED)
    for run in failed.order_by("thread", "-finished_at").distinct("thread")[:BATCH]:
        assert run.finished_at is not None
        yield _notice(run, NoticeKind.FAILED, run.finished_at, headline(run.error)[0] or _("It failed."))
    of_run = answers().filter(run=OuterRef("pk"))
    spoke = Exists(of_run) & ~Exists(of_run.filter(metadata__has_key="asks"))
    finished = ended.filter(spoke, ~_known(NoticeKind.FINISHED, owner), status=RunStatus.SUCCEEDED)
    for run in finished.order_by("finished_at")[:BATCH]:
        answer = answers().filter(run=run).order_by("-position").first()
        assert run.finished_at is not None
        yield _notice(run, NoticeKind.FINISHED, run.finished_at, headline(answer.content)[0] if answer else "")


def _known(kind: NoticeKind, owner: OuterRef) -> Exists:
    return Exists(Notice.objects.filter(user=owner, kind=kind, subject=OuterRef("pk")))


def _of_action(action: AgentAction, at: datetime, said: str) -> Notice:
    thread = agent_of(action.thread)
    said = clip(visible(said), Notice.LENGTH)
    return Notice(
        user_id=action.user_id, thread_id=thread, kind=NoticeKind.WAITING, subject=action.pk, said=said, at=at
    )


def _notice(run: AgentRun, kind: NoticeKind, at: datetime, said: str, subject: UUID | None = None) -> Notice:
    thread, said = agent_of(run.thread), clip(visible(said), Notice.LENGTH)
    owner, about = run.thread.user_id, subject or run.pk
    return Notice(user_id=owner, thread_id=thread, kind=kind, subject=about, run=run.pk, said=said, at=at)
