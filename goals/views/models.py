"""Choosing a model: the form that the first run and the settings share, and its Test button."""

from collections.abc import Callable
from functools import partial
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.connections import choice_of, connect_model, endpoint_of, make_default, remove_connection, uses_demo
from agents.models import ModelConnection
from agents.outside import Busy, answer_later
from agents.providers.base import Endpoint, ProviderError, Verdict
from agents.providers.catalog import kind_of, known_kinds
from agents.providers.probe import explained, find_ollama, list_models, test_connection
from agents.signed_in import SignedInRequest, signed_in
from goals.forms import NO_MODEL, ConnectionForm

# Servers with hundreds of models are named in part.
MODELS_NAMED = 12


@require_http_methods(["GET", "POST"])
@signed_in
def settings_models(request: SignedInRequest) -> HttpResponse:
    form = ConnectionForm(request.user, request.POST or None)
    if request.method == "POST" and connect(request, form):
        return redirect("settings_models")
    page = {"form": form, "connections": connections_of(request), "uses_demo": uses_demo(request.user), **choices(form)}
    page |= {"here": "settings", "section": "models"}
    return render(request, "settings/models.html", page, status=422 if form.is_bound else 200)


def connections_of(request: SignedInRequest) -> list[dict[str, object]]:
    found = ModelConnection.objects.for_user(request.user)
    return [{"row": row, "kind": kind_of(row.kind)} for row in found]


def choices(form: ConnectionForm) -> dict[str, object]:
    """What the options of the form show: each kind with (name, label) of the models it is known to have."""
    local = find_ollama()
    kinds = []
    for kind in known_kinds():
        found = local if kind.kind == "ollama" else None
        models = [(name, f"{name}, {filesizeformat(size)}") for name, size in found or []]
        kinds.append({"kind": kind, "models": models or [(name, name) for name in kind.models], "found": bool(models)})
    return {"kinds": kinds, "chosen": form.data.get("kind", "ollama" if local else "demo")}


def connect(request: SignedInRequest, form: ConnectionForm) -> bool:
    """Store what the form holds as the user's default; say on the form why not."""
    if not form.is_valid():
        return False
    kind, url, key, model = form.values()
    connect_model(request.user, kind.kind, model, url, key)
    return True


@require_POST
@signed_in
def model_test(request: SignedInRequest) -> HttpResponseBase:
    """The Test button of an option: one real call, and its verdict as a line."""
    form = ConnectionForm(request.user, request.POST)
    if form.has_error(NON_FIELD_ERRORS, NO_MODEL):
        kind, url, key, _model = form.values()
        return _later(request, partial(_offer, endpoint_of(kind.kind, url, key, staff=request.user.is_staff)))
    if not form.is_valid():
        return HttpResponse(_line(Verdict(ok=False, message=str(next(iter(form.errors.values()))[0]))))
    kind, url, key, model = form.values()
    endpoint = endpoint_of(kind.kind, url, key, staff=request.user.is_staff)
    return _later(request, partial(test_connection, endpoint, model))


@require_POST
@signed_in
def connection_test(request: SignedInRequest, connection_id: UUID) -> HttpResponseBase:
    connection = get_object_or_404(ModelConnection.objects.for_user(request.user), pk=connection_id)
    choice = choice_of(connection, staff=request.user.is_staff)
    return _later(request, partial(test_connection, choice.endpoint, choice.model))


def _later(request: SignedInRequest, ask: Callable[[], Verdict]) -> HttpResponseBase:
    """A server may take a minute to answer; one such question at a time for each user."""
    try:
        return answer_later(request.user.pk, lambda: _line(ask()))
    except Busy:
        return HttpResponse(_line(Verdict(ok=False, message=_("Another test is still running."))), status=429)


def _line(verdict: Verdict) -> str:
    return render_to_string("settings/verdict.html", {"verdict": verdict})


def _offer(endpoint: Endpoint) -> Verdict:
    """Say which models a server has, when none was named."""
    try:
        names = list_models(endpoint)
    except ProviderError as error:
        return Verdict(ok=False, message=explained(error, endpoint, ""))
    shown = ", ".join(names[:MODELS_NAMED])
    return Verdict(ok=False, message=_("Which model? The server has: %(names)s.") % {"names": shown or "–"})


@require_POST
@signed_in
def connection_default(request: SignedInRequest, connection_id: UUID) -> HttpResponse:
    connection = get_object_or_404(ModelConnection.objects.for_user(request.user), pk=connection_id)
    make_default(connection)
    return redirect("settings_models")


@require_POST
@signed_in
def connection_delete(request: SignedInRequest, connection_id: UUID) -> HttpResponse:
    connection = get_object_or_404(ModelConnection.objects.for_user(request.user), pk=connection_id)
    remove_connection(connection)
    messages.success(request, _("The connection is removed."))
    return redirect("settings_models")
