"""When an agent looks in by itself: the list, set, changed, paused, begun at once (mission A12)."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.agentable import agentable_of
from agents.budgets.counting import zone_of
from agents.refusals import Refused
from agents.signed_in import SignedInRequest, signed_in
from goals import deeds, schedules
from goals.firing import fire_now
from goals.schedule import Schedule, ScheduleKind
from memory.models import AgentRun, Thread
from memory.text import newlines


@dataclass(frozen=True, slots=True)
class Line:
    """A schedule on the page. said: when it comes, in words. time: the same as it can be typed in; empty for what comes
    once. run: what its last time has begun, if that is there."""

    schedule: Schedule
    said: str
    time: str
    run: AgentRun | None


@require_GET
@signed_in
def thread_schedules(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    """With a `time`: also what that would be, which the form asks for while it is typed."""
    typed = {"time": request.GET["time"]} if "time" in request.GET else {}
    return _page(request, _thread(request, thread_id), typed=typed)


@require_POST
@signed_in
def schedule_add(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    thread, given = _thread(request, thread_id), request.POST
    try:
        made = deeds.set_time(
            thread,
            given.get("time", ""),
            newlines(given.get("intent", "")),
            only_if_changed="only_if_changed" in given,
        )
    except Refused as refused:
        return _page(request, thread, problem=refused.message, typed=given.dict(), status=422)
    messages.success(request, " ".join([_("Set: %(time)s.") % {"time": schedules.said(made)}, *_next(made)]))
    return redirect("thread_schedules", thread_id)


@require_POST
@signed_in
def schedule_change(request: SignedInRequest, schedule_id: UUID) -> HttpResponse:
    schedule, given = _schedule(request, schedule_id), request.POST
    time = given.get("time", "").strip()
    try:
        deeds.change_time(
            schedule,
            time=time if time and time != schedules.typed(schedule) else None,
            intent=newlines(given.get("intent", "")),
            only_if_changed="only_if_changed" in given,
        )
    except Refused as refused:
        wrong = given.dict() | {"schedule": schedule.pk, "problem": refused.message}
        return _page(request, schedule.thread, changed=wrong, status=422)
    schedule.refresh_from_db()
    messages.success(request, _("Changed: %(time)s.") % {"time": schedules.said(schedule)})
    return redirect("thread_schedules", schedule.thread_id)


@require_POST
@signed_in
def schedule_pause(request: SignedInRequest, schedule_id: UUID) -> HttpResponse:
    return _done(request, schedule_id, deeds.pause_time, _("It is paused."))


@require_POST
@signed_in
def schedule_resume(request: SignedInRequest, schedule_id: UUID) -> HttpResponse:
    schedule = _schedule(request, schedule_id)
    deeds.resume_time(schedule)
    schedule.refresh_from_db()
    messages.success(request, " ".join([_("It goes on."), *_next(schedule)]))
    return redirect("thread_schedules", schedule.thread_id)


@require_POST
@signed_in
def schedule_delete(request: SignedInRequest, schedule_id: UUID) -> HttpResponse:
    return _done(request, schedule_id, deeds.delete_time, _("It is deleted."))


@require_POST
@signed_in
def schedule_now(request: SignedInRequest, schedule_id: UUID) -> HttpResponse:
    schedule = _schedule(request, schedule_id)
    if fire_now(schedule):
        messages.success(request, _("The agent looks in now."))
    else:
        messages.error(request, _("Too much waits already; try again when some of it is done."))
    return redirect("thread_schedules", schedule.thread_id)


def _thread(request: SignedInRequest, thread_id: UUID) -> Thread:
    return get_object_or_404(Thread.objects.for_user(request.user).select_related("user"), pk=thread_id)


def _schedule(request: SignedInRequest, schedule_id: UUID) -> Schedule:
    mine = Schedule.objects.for_user(request.user).set_by_somebody().select_related("thread")
    return get_object_or_404(mine, pk=schedule_id)


def _next(schedule: Schedule) -> list[str]:
    """When something recurring comes next, in a sentence. What comes once says that itself."""
    if schedule.kind != ScheduleKind.RECURRING:
        return []
    return [_("Next: %(moment)s.") % {"moment": schedules.moment_said(schedule)}]


def _meant(thread: Thread, time: str) -> str:
    """How a time is understood; empty as long as it is not."""
    with suppress(Refused):
        meant = schedules.understood(thread, time)
        comes = schedules.moment_said(meant) if meant.kind == ScheduleKind.RECURRING else ""
        return ", ".join([schedules.said(meant), *([_("next %(moment)s") % {"moment": comes}] if comes else [])])
    return ""


def _done(request: SignedInRequest, schedule_id: UUID, what: Callable[[Schedule], None], words: str) -> HttpResponse:
    schedule = _schedule(request, schedule_id)
    what(schedule)
    messages.success(request, words)
    return redirect("thread_schedules", schedule.thread_id)


def _page(
    request: SignedInRequest,
    thread: Thread,
    *,
    problem: str = "",
    typed: dict[str, str] | None = None,
    changed: dict[str, object] | None = None,
    status: int = 200,
) -> HttpResponse:
    listed = list(Schedule.objects.filter(thread=thread).set_by_somebody())
    runs = AgentRun.objects.in_bulk([each.last_run for each in listed if each.last_run])
    agent = agentable_of(thread)
    page = {
        "agent": agent,
        "thread": thread,
        "here": agent.pk,
        "lines": [
            Line(
                each,
                schedules.said(each),
                schedules.typed(each),
                runs.get(each.last_run) if each.last_run else None,
            )
            for each in listed
        ],
        "longest": Schedule.INTENT_LENGTH,
        "problem": problem,
        "zone": zone_of(thread.user_id).key,
        "typed": typed or {},
        "meant": _meant(thread, typed.get("time", "")) if typed and not problem else "",
        "changed": changed or {},
    }
    return render(request, "goals/schedules.html", page, status=status)
