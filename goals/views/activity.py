"""Activity: what was done, as a page and as a file, and taking back much of it at once, after a look at what that would
do."""

from datetime import datetime
from itertools import starmap

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _, ngettext
from django.views.decorators.http import require_GET, require_http_methods

from agents.agentable import agentable_of
from agents.pages import uuid_or_none
from agents.signed_in import SignedInRequest, signed_in
from agents.undoing import take_back_all
from goals.activity import below, page
from goals.activity_form import ActivityForm
from goals.moments import moment
from goals.outlook import Outlook
from goals.owners import OWNERS
from goals.templatetags.runs import whose
from memory.models import AgentRun, Thread
from tools.export import COLUMNS, Columns, Format, exported
from tools.models import AgentAction
from tools.undo_many import Batch, batch, preview

IN_FILE: Columns = {"agent": lambda action: whose(action) if action.run_id else "", **COLUMNS}


@require_GET
@signed_in
def activity(request: SignedInRequest) -> HttpResponse:
    form, cursor = ActivityForm(request.GET, user=request.user), request.GET.get("after", "")
    found = page(request.user, form.sought, form.within, cursor, with_costs=form.is_open)
    asked = request.GET.copy()
    asked.pop("after", None)
    shown = {"here": "activity", "form": form, "page": found, "newest": not cursor, "asked": asked.urlencode()}
    return render(request, "activity.html", shown)


@require_GET
@signed_in
def activity_file(request: SignedInRequest, form: Format) -> HttpResponseBase:
    """All that the page with the same filters would show, page after page."""
    asked = ActivityForm(request.GET, user=request.user)
    mine = AgentAction.objects.for_user(request.user).filter(asked.within)
    return exported(asked.sought.among(mine).select_related(*OWNERS), form, IN_FILE)


@require_http_methods(["GET", "POST"])
@signed_in
def activity_undo(request: SignedInRequest) -> HttpResponse:
    """`?run=`: all that a run did; `?since=`: all that was done since then, with `&thread=` in one conversation; with
    `&until=` only what was done by then. GET shows what would become of it; what was done later than what it showed is
    not taken back."""
    which, question, whose_work = _asked(request)
    until = moment(request.POST.get("seen", "")) or moment(request.GET.get("until", ""))
    found = batch(request.user.pk, which, until)
    if request.method == "POST":
        return _take_back(request, found)
    shown = list(starmap(Outlook.of, zip(found.actions, preview(found.actions, request.user.pk), strict=True)))
    goes, stays = ([each for each in shown if each.possible is possible] for possible in (True, False))
    stays += map(Outlook.of_lasting, found.lasting)
    page = {"here": "activity", "question": question, "whose": whose_work, "goes": goes, "stays": stays}
    return render(request, "activity_undo.html", page | {"batch": found, "older": _older(request, found)})


def _older(request: SignedInRequest, found: Batch) -> str:
    """The query of the page that shows what comes after these; empty when there is no more."""
    asked = request.GET.copy()
    asked["until"] = found.reaches.isoformat() if found.reaches else ""
    return asked.urlencode() if found.reaches else ""


def _take_back(request: SignedInRequest, found: Batch) -> HttpResponse:
    """What stays is then told where it was shown, with the reasons."""
    taken = take_back_all(found.actions, request.user)
    kept = sum(each.undo is None for each in taken)
    _tell(request, len(taken) - kept, kept)
    return redirect(request.get_full_path()) if kept or found.more else redirect("activity")


def _asked(request: SignedInRequest) -> tuple[Q, str, str]:
    """What is to be taken back, as a question, and whose work that is."""
    if run_id := uuid_or_none(request.GET.get("run", "")):
        run = get_object_or_404(AgentRun.objects.for_user(request.user).select_related("thread"), pk=run_id)
        question = _("Undo this run of %(time)s?") % {"time": _clock(run.created_at)}
        return Q(run=run), question, agentable_of(run.thread).name()
    since = moment(request.GET.get("since", ""))
    if since is None:
        raise Http404
    question = _("Undo all since %(time)s?") % {"time": _clock(since)}
    if "thread" not in request.GET:
        return Q(finished_at__gte=since), question, _("All your agents")
    mine = Thread.objects.for_user(request.user)
    thread = get_object_or_404(mine, pk=uuid_or_none(request.GET["thread"]))
    return below(thread.pk, since), question, agentable_of(thread).name()


def _clock(at: datetime) -> str:
    """The time, with the day if it is not today's."""
    local = timezone.localtime(at)
    return date_format(local, "H:i" if local.date() == timezone.localdate() else "j F Y, H:i")


def _tell(request: HttpRequest, taken: int, kept: int) -> None:
    if taken:
        words = ngettext("%(n)d action was taken back.", "%(n)d actions were taken back.", taken)
        messages.success(request, words % {"n": taken})
    if kept:
        words = ngettext("%(n)d action stays.", "%(n)d actions stay.", kept)
        messages.error(request, words % {"n": kept})
