"""Activity: what was done, and taking back much of it at once, after a look at what that would do."""

from itertools import starmap
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, ngettext
from django.views.decorators.http import require_GET, require_http_methods

from agents.agentable import agentable_of
from agents.pages import uuid_or_none
from agents.signed_in import SignedInRequest, signed_in
from agents.undoing import take_back_all
from goals.activity import below, days
from goals.models import Goal
from goals.moments import moment
from goals.outlook import Outlook
from memory.models import AgentRun, Thread
from tools.undo import preview, undoable


@require_GET
@signed_in
def activity(request: SignedInRequest) -> HttpResponse:
    before = moment(request.GET.get("before", ""))
    goals = Goal.objects.for_user(request.user).order_by("title")
    wanted = uuid_or_none(request.GET.get("goal", ""))
    chosen = goals.filter(pk=wanted).first() if wanted else None
    found, older = days(request.user, below(chosen.thread_id) if chosen else Q(), before)
    page = {"here": "activity", "days": found, "older": older, "newest": not before, "goals": goals, "chosen": chosen}
    return render(request, "activity.html", page)


@require_http_methods(["GET", "POST"])
@signed_in
def activity_undo(request: SignedInRequest) -> HttpResponse:
    """`?run=`: all that a run did; `?thread=&since=`: all that was done in a conversation since then. GET shows what
    would become of it."""
    which, words = _asked(request)
    actions = undoable(request.user.pk, which)
    if request.method == "POST":
        taken = [each for each in take_back_all(actions, request.user) if each.undo]
        _tell(request, len(taken), len(actions) - len(taken))
        return redirect("activity")
    shown = list(starmap(Outlook.of, zip(actions, preview(actions, request.user.pk), strict=True)))
    goes, stays = ([each for each in shown if each.possible is possible] for possible in (True, False))
    return render(request, "activity_undo.html", {"here": "activity", "words": words, "goes": goes, "stays": stays})


def _asked(request: SignedInRequest) -> tuple[Q, str]:
    """What is to be taken back, and what that is called."""
    if run_id := uuid_or_none(request.GET.get("run", "")):
        run = get_object_or_404(AgentRun.objects.for_user(request.user).select_related("thread"), pk=run_id)
        return Q(run=run), _("All that one run of %(agent)s did") % {"agent": agentable_of(run.thread).name()}
    since = moment(request.GET.get("since", ""))
    thread = _thread(request, uuid_or_none(request.GET.get("thread", "")))
    if since is None:
        raise Http404
    return below(thread.pk, since), _("All that %(agent)s did from here on") % {"agent": agentable_of(thread).name()}


def _thread(request: SignedInRequest, thread_id: UUID | None) -> Thread:
    return get_object_or_404(Thread.objects.for_user(request.user), pk=thread_id)


def _tell(request: HttpRequest, taken: int, kept: int) -> None:
    if taken:
        words = ngettext("%(n)d action was taken back.", "%(n)d actions were taken back.", taken)
        messages.success(request, words % {"n": taken})
    if kept:
        words = ngettext("%(n)d stays: it was changed since.", "%(n)d stay: they were changed since.", kept)
        messages.error(request, words % {"n": kept})
