"""The page of models: those that are connected, a new one, and who does what. The first run has its form as well."""

from contextlib import suppress
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.defaultfilters import filesizeformat
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from agents.connecting import (
    change_connection,
    choose_for_uses,
    connect_model,
    make_default,
    note_test,
    remove_connection,
)
from agents.connections import endpoint_of, key_for, uses_demo
from agents.models import ModelConnection
from agents.outside import waits_outside
from agents.providers.capabilities import Capabilities
from agents.providers.catalog import Kind, kind_of, known_kinds
from agents.providers.probe import find_ollama, learn
from agents.refusals import Refused
from agents.services import assistant_of
from agents.signed_in import SignedInRequest, signed_in
from goals.connection_forms import ConnectionForm, EditForm, UsesForm
from goals.tested import recall
from memory.secrets import unseal


@require_http_methods(["GET", "POST"])
@signed_in
@waits_outside
def settings_models(request: SignedInRequest) -> HttpResponse:
    form = ConnectionForm(request.user, request.POST or None)
    if request.method == "POST" and connect(request, form):
        return redirect("settings_models")
    return _page(request, form, uses_form(request))


def _page(request: SignedInRequest, form: ConnectionForm, uses: UsesForm) -> HttpResponse:
    page = {"form": form, "uses": uses, "connections": connections_of(request), **choices(form)}
    page |= {"uses_demo": uses_demo(request.user), "here": "settings", "section": "models"}
    return render(request, "settings/models.html", page, status=422 if form.is_bound or uses.is_bound else 200)


def connections_of(request: SignedInRequest) -> list[dict[str, object]]:
    found = ModelConnection.objects.for_user(request.user)
    return [{"row": row, "kind": kind_of(row.kind), "can": row.capabilities} for row in found]


def choices(form: ConnectionForm, used: ModelConnection | None = None) -> dict[str, object]:
    """What the options of the form show: each kind with (name, label) of the models it is known to have, and with what
    was written into its fields; nothing yet, with what is `used`."""
    kinds, chosen = [], "demo"
    for kind in known_kinds():
        found = find_ollama(kind.default_base_url.removesuffix("/v1")) if kind.is_found else None
        models = [(name, f"{name}, {filesizeformat(size)}") for name, size in found or []]
        chosen = kind.kind if models else chosen
        kinds.append({"kind": kind, "found": len(models), **_fields(form, kind, models, used)})
    return {"kinds": kinds, "chosen": form.data.get("kind", used.kind if used else chosen)}


def _fields(
    form: ConnectionForm, kind: Kind, found: list[tuple[str, str]], used: ModelConnection | None
) -> dict[str, object]:
    models = found or [(name, name) for name in kind.models]
    url, model = kind.default_base_url, models[0][0] if models else ""
    if used is not None and used.kind == kind.kind:
        url, model = used.address, used.model
    url, model = form.written(kind, "url", url), form.written(kind, "model", model)
    if model and model not in dict(models):
        models = [*models, (model, model)]
    has_key = bool(key_for(form.user, kind.kind, url))
    return {"models": models, "model": model, "url": url, "key": form.written(kind, "key"), "has_key": has_key}


def connect(request: SignedInRequest, form: ConnectionForm) -> bool:
    """Store what the form holds, with what its server says of the model and a test has shown, as the user's default or,
    when that is asked, only so that it can be chosen; say on the form why not."""
    if not form.is_valid():
        return False
    kind, given = form.values()
    learned = _learned(request, kind, given.base_url, given.api_key, given.model)
    verdict = recall(request, kind.kind, given)
    if verdict is not None:
        learned = Capabilities(tools=verdict.tools).over(learned)
    try:
        made = connect_model(request.user, kind.kind, given, learned, default="only_save" not in request.POST)
    except Refused as refused:
        form.add_error(None, refused.message)
        return False
    if verdict is not None:
        note_test(made, verdict, learned)
    return True


@require_http_methods(["GET", "POST"])
@signed_in
@waits_outside
def connection_edit(request: SignedInRequest, connection_id: UUID) -> HttpResponse:
    connection = get_object_or_404(ModelConnection.objects.for_user(request.user), pk=connection_id)
    form = EditForm(connection, request.POST or None)
    if request.method == "POST" and form.is_valid() and _changed(request, connection, form):
        messages.success(request, _("Saved."))
        return redirect("settings_models")
    page = {"form": form, "row": connection, "kind": kind_of(connection.kind), "here": "settings", "section": "models"}
    return render(request, "settings/connection.html", page, status=422 if form.is_bound else 200)


def _changed(request: SignedInRequest, connection: ModelConnection, form: EditForm) -> bool:
    given, kind = form.given(), kind_of(connection.kind)
    learned = None
    if given.api_key or not connection.sealed_key or given.base_url == connection.address:
        with suppress(ImproperlyConfigured):  # a key that cannot be read is only replaced
            key = given.api_key or unseal(connection.sealed_key)  # a stored one goes nowhere but where it was given for
            learned = _learned(request, kind, given.base_url, key, given.model)
    try:
        change_connection(connection, given, learned)
    except Refused as refused:
        form.add_error(None, refused.message)
        return False
    return True


def _learned(request: SignedInRequest, kind: Kind, base_url: str, key: str, model: str) -> Capabilities:
    return learn(endpoint_of(kind.kind, base_url, key, staff=request.user.is_staff), model)


def uses_form(request: SignedInRequest, data: object = None) -> UsesForm:
    agent, mine = assistant_of(request.user), ModelConnection.objects.for_user(request.user)
    default = next((each.pk for each in mine if each.is_default), None)
    chosen = {"default": default, "summariser": agent.summariser_id, "stand_in": agent.stand_in_id}
    return UsesForm(mine, data, initial=chosen)


@require_POST
@signed_in
def model_uses(request: SignedInRequest) -> HttpResponse:
    """Who does what."""
    form = uses_form(request, request.POST)
    if form.is_valid():
        try:
            choose_for_uses(assistant_of(request.user), **form.cleaned_data)
        except Refused as refused:
            form.add_error(None, refused.message)
        else:
            messages.success(request, _("Saved."))
            return redirect("settings_models")
    return _page(request, ConnectionForm(request.user), form)


@require_POST
@signed_in
def connection_default(request: SignedInRequest, connection_id: UUID) -> HttpResponse:
    connection = get_object_or_404(ModelConnection.objects.for_user(request.user), pk=connection_id)
    try:
        make_default(connection)
    except Refused as refused:
        messages.error(request, refused.message)
    return redirect("settings_models")


@require_POST
@signed_in
def connection_delete(request: SignedInRequest, connection_id: UUID) -> HttpResponse:
    connection = get_object_or_404(ModelConnection.objects.for_user(request.user), pk=connection_id)
    remove_connection(connection)
    messages.success(request, _("The connection is removed."))
    return redirect("settings_models")
