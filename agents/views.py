"""The pages of conversations: to look, to write, to stop, to try again. Each parses, calls one service, renders."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.template.loader import render_to_string
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.agentable import agentable_of
from agents.decisions import decide, edit, resolve
from agents.live import frames
from agents.live.cards import fields
from agents.live.details import details
from agents.live.screen import Screen, changed, earlier
from agents.live.steps import shown_step
from agents.pages import conversation, uuid_or_none
from agents.refusals import Refused
from agents.restart import restart
from agents.services import assistant_of, pick_answer, retry, retry_free, retry_now, send_message
from agents.signed_in import SignedInRequest, signed_in
from agents.stopping import stop_run
from agents.undoing import take_back
from memory.models import AgentRun, Thread, ThreadMessage
from memory.text import newlines
from tools.models import AgentAction, ApprovalState, Resolution, agent_of
from tools.trust import Scope

DECISIONS = {"approve": ApprovalState.APPROVED, "reject": ApprovalState.REJECTED}


@require_GET
@signed_in
def assistant(request: SignedInRequest) -> HttpResponse:
    agent = assistant_of(request.user)
    return render(request, "agents/thread.html", conversation(request, agent.thread) | {"here": agent.pk})


@require_POST
@signed_in
def thread_messages(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    thread = _thread(request, thread_id)
    content = newlines(request.POST.get("content", ""))
    try:
        client_id, files = uuid_or_none(request.POST.get("client_message_id", "")), request.FILES.getlist("files")
        accepted = send_message(thread, content, client_id, files)
    except Refused as refused:
        return _refused(request, thread, refused, content)
    if not _is_partial(request):
        return _back(request, f"?sent={accepted.message.client_message_id or ''}")
    note = frames.partial("#composer-note", "innerHTML", "")
    return HttpResponse(_news(request, changed(thread, [], [accepted.message.pk]), accepted.message.pk) + note)


@require_GET
@signed_in
def thread_turns(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    """`?before=` answers the turns before that one, as they stand in #turns; `?after=` what a page may have missed."""
    thread = _thread(request, thread_id)
    if before := uuid_or_none(request.GET.get("before", "")):
        return HttpResponse(frames.turns_html(earlier(thread, before)))
    after = uuid_or_none(request.GET.get("after", ""))
    return HttpResponse(frames.partials(changed(thread, [], [after] if after else [])))


@require_POST
@signed_in
def run_stop(request: SignedInRequest, run_id: UUID) -> HttpResponse:
    run = get_object_or_404(AgentRun.objects.for_user(request.user).select_related("thread"), pk=run_id)
    stop_run(run)
    return _now(request, run.thread)


@require_POST
@signed_in
def run_retry(request: SignedInRequest, run_id: UUID) -> HttpResponse:
    run = get_object_or_404(AgentRun.objects.for_user(request.user).select_related("thread"), pk=run_id)
    retry_now(run)
    return _now(request, run.thread)


@require_POST
@signed_in
def run_restart(request: SignedInRequest, run_id: UUID) -> HttpResponse:
    run = get_object_or_404(AgentRun.objects.for_user(request.user).select_related("thread__user"), pk=run_id)
    try:
        restart(run)
    except Refused as refused:
        return _refused(request, run.thread, refused)
    words = _("The session is being summed up; then your message is tried again.")
    if not _is_partial(request):
        messages.success(request, words)
        return _back(request)
    return HttpResponse(
        frames.partial("#toasts", "beforeend", render_to_string("includes/toast.html", {"text": words}))
    )


@require_POST
@signed_in
def message_retry(request: SignedInRequest, message_id: UUID) -> HttpResponse:
    mine = ThreadMessage.objects.for_user(request.user).select_related("thread")
    message = get_object_or_404(mine, pk=message_id)
    return _retried(request, message, retry)


@require_POST
@signed_in
def message_free(request: SignedInRequest, message_id: UUID) -> HttpResponse:
    mine = ThreadMessage.objects.for_user(request.user).select_related("thread__user")
    return _retried(request, get_object_or_404(mine, pk=message_id), retry_free)


@require_POST
@signed_in
def message_answer(request: SignedInRequest, message_id: UUID, pick: int) -> HttpResponse:
    """pick: which of the answers that it gives, from 0."""
    mine = ThreadMessage.objects.for_user(request.user).select_related("thread__user")
    message = get_object_or_404(mine, pk=message_id)
    try:
        accepted = pick_answer(message, pick)
    except Refused as refused:
        return _refused(request, message.thread, refused)
    return _now(request, message.thread, Q(pk=accepted.message.pk))


def _retried(request: SignedInRequest, message: ThreadMessage, how: Callable[[ThreadMessage], UUID]) -> HttpResponse:
    try:
        how(message)
    except Refused as refused:
        return _refused(request, message.thread, refused)
    return _now(request, message.thread)


@require_GET
@signed_in
def action(request: SignedInRequest, action_id: UUID) -> HttpResponse:
    """What a tool call was asked and what it gave; a piece of a cell, or a page of its own."""
    known = AgentAction.objects.with_standing().select_related("approval", "thread__agents_agenttask")
    found = get_object_or_404(known.for_user(request.user), pk=action_id)
    if _is_partial(request):
        return render(request, "agents/cells/details.html", {"details": details(found)})
    thread = _thread(request, agent_of(found.thread))
    page = {"details": details(found), "step": shown_step(found), "thread": thread, "agent": agentable_of(thread)}
    return render(request, "agents/action.html", page)


@require_POST
@signed_in
def approval_decide(request: SignedInRequest, action_id: UUID, digest: str, decision: str) -> HttpResponse:
    """`digest` is of the call as the page showed it."""
    always = request.POST.get(f"always-{action_id}", "")
    if decision not in DECISIONS or always not in ("", *Scope.values):
        raise Http404
    state, reason = DECISIONS[decision], request.POST.get(f"reason-{action_id}", "")
    scope = Scope(always) if always else None
    return _decided(request, action_id, lambda action: decide(action, request.user, state, digest, reason, scope))


@require_POST
@signed_in
def approval_edit(request: SignedInRequest, action_id: UUID, digest: str) -> HttpResponse:
    """Fields are `argument-<id>-<name>`, as `cards.Field` shows them."""
    return _decided(request, action_id, lambda action: edit(action, request.user, digest, read_fields(action, request)))


def read_fields(action: AgentAction, request: HttpRequest) -> dict[str, Any]:
    """What a person has made of the arguments of a call.

    Raises:
        Refused: one that is no text is no JSON either.
    """
    sent = {field: request.POST.get(f"argument-{action.pk}-{field.name}") for field in fields(action)}
    try:
        return {field.name: field.read(value) for field, value in sent.items() if value is not None}
    except ValueError:
        raise Refused("invalid", _("What is not plain text must stay valid JSON.")) from None


@require_POST
@signed_in
def action_resolve(request: SignedInRequest, action_id: UUID, resolution: str) -> HttpResponse:
    if resolution not in Resolution.values:
        raise Http404
    return _decided(request, action_id, lambda action: resolve(action, request.user, Resolution(resolution)))


@require_POST
@signed_in
def action_undo(request: SignedInRequest, action_id: UUID) -> HttpResponse:
    """Take it back; an undo is an action, too, so that taking that back does it again."""
    return _decided(request, action_id, lambda action: take_back(action, request.user))


def _decided(request: SignedInRequest, action_id: UUID, decision: Callable[[AgentAction], object]) -> HttpResponse:
    action = get_object_or_404(AgentAction.objects.for_user(request.user).select_related("thread__user"), pk=action_id)
    try:
        decision(action)
    except Refused as refused:
        return _refused(request, action.thread, refused)
    about = [str(each) for each in (action.pk, action.undoes_id) if each]
    return _now(request, action.thread, Q(metadata__action__in=about))


def _thread(request: SignedInRequest, thread_id: UUID) -> Thread:
    return get_object_or_404(Thread.objects.for_user(request.user).select_related("user"), pk=thread_id)


def _now(request: HttpRequest, thread: Thread, about: Q | None = None) -> HttpResponse:
    """The page as it is after a press of a button about some of its messages."""
    if not _is_partial(request):
        return _back(request)
    found = ThreadMessage.objects.filter(about, thread=thread).values_list("pk", flat=True) if about else []
    return HttpResponse(_news(request, changed(thread, [], list(found))))


def _news(request: HttpRequest, screen: Screen, new: UUID | None = None) -> str:
    """Return the partials for a page. While its socket writes it, only a turn that it lacks: the rest may be newer."""
    if request.headers.get("X-Live") != "1":
        return frames.partials(screen)
    piece = next((piece for piece in frames.pieces(screen, screen.text) if new and piece.turn == new), None)
    return frames.append(new, piece.html) if new and piece else ""


def _refused(request: HttpRequest, thread: Thread, refused: Refused, content: str | None = None) -> HttpResponse:
    """422 with the reason beside the composer; what was written stays in it. A button that was pressed without script
    leads back to its page, which then says the reason."""
    if _is_partial(request):
        note = render(request, "agents/parts/refused.html", {"error": refused.message}).content.decode()
        return HttpResponse(frames.partial("#composer-note", "innerHTML", note), status=422)
    if content is None:
        messages.error(request, refused.message)
        return _back(request)
    page = conversation(request, thread, error=refused.message, content=content)
    return render(request, "agents/thread.html", page | {"page": _page(request)}, status=422)


def _back(request: HttpRequest, query: str = "") -> HttpResponse:
    return HttpResponseRedirect(_page(request).partition("?")[0] + query if query else _page(request))


def _page(request: HttpRequest) -> str:
    """The page that a form was sent from, as it was filtered."""
    page = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(page, allowed_hosts={request.get_host()}, require_https=request.is_secure()):
        return "/"
    return page


def _is_partial(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"
