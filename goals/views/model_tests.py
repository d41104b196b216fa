"""The Test buttons: one real call, and its verdict as a line."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from uuid import UUID

from django.core.exceptions import NON_FIELD_ERRORS, ImproperlyConfigured
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from agents.connecting import note_test
from agents.connections import choice_of, endpoint_of
from agents.live import frames
from agents.models import ModelConnection
from agents.outside import Busy, answer_later, waits_outside
from agents.providers.base import Endpoint, ProviderError, Verdict
from agents.providers.capabilities import Capabilities
from agents.providers.catalog import kind_of
from agents.providers.probe import explained, learn, list_models, test_connection
from agents.signed_in import SignedInRequest, signed_in
from goals.connection_forms import NO_MODEL, ConnectionForm
from goals.tested import remember

# Servers with hundreds of models are named in part; a list to choose from may be longer.
MODELS_NAMED = 12
MODELS_OFFERED = 500

type Tested = tuple[Verdict, Capabilities]


@require_POST
@signed_in
@waits_outside
def model_test(request: SignedInRequest) -> HttpResponseBase:
    """Of an option that is being filled in; its verdict is kept when that is saved. Without a model, the server's own
    are offered instead."""
    form = ConnectionForm(request.user, request.POST)
    if form.has_error(NON_FIELD_ERRORS, NO_MODEL):
        kind, given = form.values()
        endpoint = endpoint_of(kind.kind, given.base_url, given.api_key, staff=request.user.is_staff)
        return _later(request, partial(_models, endpoint), partial(_offer, kind.kind))
    if not form.is_valid():
        return HttpResponse(_line(Verdict(ok=False, message=str(next(iter(form.errors.values()))[0]))))
    kind, given = form.values()
    endpoint = endpoint_of(kind.kind, given.base_url, given.api_key, staff=request.user.is_staff)
    keep = partial(remember, request, kind.kind, given)
    return _later(request, partial(test_connection, endpoint, given.model), _line, keep)


@require_POST
@signed_in
def connection_test(request: SignedInRequest, connection_id: UUID) -> HttpResponseBase:
    """Of a connection that is stored, with what it has shown."""
    connection = get_object_or_404(ModelConnection.objects.for_user(request.user), pk=connection_id)
    try:
        choice = choice_of(connection, staff=request.user.is_staff)
    except ImproperlyConfigured:
        return HttpResponse(_line(Verdict(ok=False, message=_("The stored key cannot be read. Give it again."))))

    def ask() -> Tested:
        return test_connection(choice.endpoint, choice.model), learn(choice.endpoint, choice.model)

    def keep(found: Tested) -> None:
        note_test(connection, *found)
        with suppress(ModelConnection.DoesNotExist):  # removed meanwhile
            connection.refresh_from_db()

    def tell(found: Tested) -> str:
        return _line(found[0]) + (_summary(connection) if request.headers.get("HX-Request") else "")

    return _later(request, ask, tell, keep)


def _later[T](
    request: SignedInRequest, ask: Callable[[], T], tell: Callable[[T], str], keep: Callable[[T], None] | None = None
) -> HttpResponseBase:
    """A server may take a minute to answer; one such question at a time for each user."""
    failed = _line(Verdict(ok=False, message=_("Something went wrong inside Waymark. The log has the details.")))
    try:
        return answer_later(request.user.pk, ask, tell, keep, failed=failed)
    except Busy:
        return HttpResponse(_line(Verdict(ok=False, message=_("Another test is still running."))), status=429)


def _line(verdict: Verdict) -> str:
    return render_to_string("settings/verdict.html", {"verdict": verdict})


def _summary(connection: ModelConnection) -> str:
    """The line above the button, as it is after a test. The time of day is not said: here nobody's zone is active."""
    shown = {"row": connection, "kind": kind_of(connection.kind), "just_now": True}
    return frames.partial(
        f"#connection-{connection.pk}", "innerHTML", render_to_string("settings/connection_summary.html", shown)
    )


def _models(endpoint: Endpoint) -> list[str] | str:
    """The models of a server, or why it does not say."""
    try:
        return list_models(endpoint)
    except ProviderError as error:
        return explained(error, endpoint, "")


def _offer(kind: str, models: list[str] | str) -> str:
    """Say which models a server has, when none was named, and let one be chosen."""
    if isinstance(models, str):
        return _line(Verdict(ok=False, message=models))
    shown = ", ".join(models[:MODELS_NAMED])
    line = _line(Verdict(ok=False, message=_("Which model? The server has: %(names)s.") % {"names": shown or "–"}))
    if not models:
        return line
    offered = {"name": kind, "models": models[:MODELS_OFFERED]}
    return line + frames.partial(
        f"#{kind}-model-field", "innerHTML", render_to_string("includes/model_choice.html", offered)
    )
