"""Making, changing and ending goals. Their conversation is `agents.views`."""

from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.models import ModelConnection
from agents.refusals import Refused
from agents.services import trust_again
from agents.signed_in import SignedInRequest, signed_in
from goals.forms import GoalForm, GoalSettingsForm
from goals.models import Goal
from goals.services import archive_goal, choose_model, create_goal, delete_goal, reopen_goal, update_goal
from goals.toolbox import groups, modes_of, set_modes, set_packs, switches
from goals.views.budget import shown
from tools.file_models import WorkspaceFile


def created(request: SignedInRequest, form: GoalForm) -> Goal | None:
    """Make the goal that a posted form asks for; say on the form why not."""
    if request.method != "POST" or not form.is_valid():
        return None
    try:
        return create_goal(request.user, **form.cleaned_data)
    except Refused as refused:
        form.add_error(None, refused.message)
        return None


@require_http_methods(["GET", "POST"])
@signed_in
def goal_new(request: SignedInRequest) -> HttpResponse:
    form = GoalForm(request.POST or None)
    if goal := created(request, form):
        return redirect("goal", goal.pk)
    return render(request, "goals/new.html", {"form": form}, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
@signed_in
def goal_settings(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    """What the agent is told and what it may do, in one form. Packs that it does not name are off."""
    goal = get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)
    initial = {"title": goal.title, "description": goal.description, "model": goal.model_connection_id}
    connections = ModelConnection.objects.for_user(request.user)
    form = GoalSettingsForm(request.POST or None, initial=initial, connections=connections)
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                choose_model(goal, form.cleaned_data["model"])
                update_goal(goal, title=form.cleaned_data["title"], description=form.cleaned_data["description"])
                set_modes(goal, modes_of(request.POST))
                set_packs(goal, request.POST.getlist("packs"))
        except Refused as refused:
            form.add_error("model" if refused.code == "no_tools" else None, refused.message)
        else:
            messages.success(request, _("Saved."))
            return redirect("goal_settings", goal.pk)
    told, said = goal.thread.messages.count(), goal.thread.messages.said().count()
    counts = {"messages": said, "steps": told - said, "notes": goal.thread.notes.count()}
    counts["files"] = WorkspaceFile.objects.filter(workspace=goal.thread_id).count()
    budgets = [each for each in shown(request) if each["thread_id"] == goal.thread_id]
    page = {"goal": goal, "form": form, "counts": counts, "budgets": budgets, "here": goal.pk}
    typed = (modes_of(request.POST), request.POST.getlist("packs")) if form.is_bound else (None, None)
    page |= {"groups": groups(goal, typed[0]), "switches": switches(goal, typed[1])}
    return render(request, "goals/settings.html", page, status=422 if form.is_bound else 200)


@require_POST
@signed_in
def goal_vouch(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal = get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)
    trust_again(goal.thread)
    messages.success(request, _("What it has read so far counts as yours now."))
    return redirect("goal_settings", goal.pk)


@require_POST
@signed_in
def goal_archive(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal = get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)
    archive_goal(goal)
    messages.success(request, _("“%(title)s” is archived.") % {"title": goal.title})
    return redirect("home")


@require_POST
@signed_in
def goal_reopen(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal = get_object_or_404(Goal.objects.for_user(request.user), pk=goal_id)
    reopen_goal(goal)
    return redirect("goal", goal.pk)


@require_POST
@signed_in
def goal_delete(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    goal = get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)
    delete_goal(goal)
    messages.success(request, _("“%(title)s” is deleted.") % {"title": goal.title})
    return redirect("home")
