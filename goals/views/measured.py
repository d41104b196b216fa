"""A measured goal: its target, what was measured, and where it leads (mission H1)."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.forms import model_to_dict
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, ngettext
from django.views.decorators.http import require_GET, require_POST

from agents.refusals import Refused
from agents.signed_in import SignedInRequest, signed_in
from goals import deeds, measuring
from goals.chart import chart
from goals.figures import decoded, typed
from goals.forms import MeasurementForm, TargetForm
from goals.measured import Measurement, Target
from goals.models import Goal
from goals.outlook_words import words_of

SHOWN = 200
LARGEST_TABLE = 1_000_000
"""Bytes: far more than as many lines as are kept."""


@require_GET
@signed_in
def goal_measured(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    return _page(request, _goal(request, goal_id))


@require_POST
@signed_in
def target_set(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal, form = _goal(request, goal_id), TargetForm(request.POST)

    def save() -> str:
        given = form.cleaned_data
        deeds.set_target(goal.thread, given["name"], given["value"], given["deadline"], given["unit"])
        return _("The target is set.")

    return _saved(request, goal, form, save)


@require_POST
@signed_in
def target_drop(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    deeds.drop_target(_goal(request, goal_id).thread)
    messages.success(request, _("This is not measured any more; what was measured is kept."))
    return redirect("goal_measured", goal_id)


@require_POST
@signed_in
def measurement_add(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal, form = _goal(request, goal_id), MeasurementForm(request.POST)

    def save() -> str:
        given = form.cleaned_data
        deeds.measure(goal.thread, given["value"], given["day"], given["note"])
        return _("Measurement added.")

    return _saved(request, goal, form, save)


@require_POST
@signed_in
def measurements_import(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal, text = _goal(request, goal_id), request.POST.get("lines", "")
    if table := request.FILES.get("table"):
        text = decoded(table.read(LARGEST_TABLE))
    try:
        taken = deeds.take_in(goal.thread, text)
    except Refused as refused:
        return _page(request, goal, lines=text, problem=refused.message, status=422)
    messages.success(request, ngettext("%(n)d measurement added.", "%(n)d measurements added.", taken) % {"n": taken})
    return redirect("goal_measured", goal_id)


@require_POST
@signed_in
def measurement_delete(request: SignedInRequest, goal_id: UUID, measurement_id: UUID) -> HttpResponse:
    goal = _goal(request, goal_id)
    deeds.delete_measurement(get_object_or_404(Measurement, pk=measurement_id, thread=goal.thread_id))
    messages.success(request, _("It is deleted."))
    return redirect("goal_measured", goal_id)


def _goal(request: SignedInRequest, goal_id: UUID) -> Goal:
    return get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)


def _saved(
    request: SignedInRequest, goal: Goal, form: TargetForm | MeasurementForm, save: Callable[[], str]
) -> HttpResponse:
    if form.is_valid():
        try:
            messages.success(request, save())
            return redirect("goal_measured", goal.pk)
        except Refused as refused:
            form.add_error(refused.code if refused.code in form.fields else None, refused.message)
    kind = "target_form" if isinstance(form, TargetForm) else "form"
    return _page(request, goal, **{kind: form}, status=422)


def _page(request: SignedInRequest, goal: Goal, *, status: int = 200, **given: object) -> HttpResponse:
    stands = measuring.outlook(goal.thread_id)
    newest = Measurement.objects.filter(thread=goal.thread_id).select_related("message").order_by("-day", "-created_at")
    target = Target.objects.filter(thread=goal.thread_id).first()
    page = {
        "here": goal.pk,
        "goal": goal,
        "outlook": stands,
        "chart": chart(stands) if stands else None,
        "words": words_of(stands) if stands else "",
        "measurements": newest[:SHOWN],
        "example": typed(stands.latest.value if stands and stands.latest else 72.5),
        "form": MeasurementForm(initial={"day": measuring.today_of(request.user.pk)}),
        "target_form": TargetForm(initial=model_to_dict(target) if target else {}),
        **given,
    }
    return render(request, "goals/measured.html", page, status=status)
