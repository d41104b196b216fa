"""What an agent keeps in mind: read, added to, corrected, taken back, and asked why (missions E1 and H9)."""

from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.agentable import Agentable, agentable_of
from agents.pages import done_at, done_here
from agents.signed_in import SignedInRequest, signed_in
from memory.document import MEMORY
from memory.learnings import LearningRefused, erase
from memory.models import Document, Learning, Thread
from tools.forgetting import FORGOTTEN
from tools.learnings import REPLACED, TOLD, correct, take_back, tell
from tools.models import AgentAction

FORMER = 50
DOCUMENTS = 31


@dataclass(frozen=True, slots=True)
class Typed:
    """What was refused as it stands, so that nothing is lost. learning: which it was to correct; None: a new one."""

    text: str
    problem: str
    learning: UUID | None = None


@require_GET
@signed_in
def memory(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    return _page(request, _agent(request, thread_id))


@require_POST
@signed_in
def memory_add(request: SignedInRequest, thread_id: UUID) -> HttpResponse:
    agent = _agent(request, thread_id)
    return _done(request, agent, None, lambda text: tell(agent.thread, text))


@require_POST
@signed_in
def learning_correct(request: SignedInRequest, learning_id: UUID) -> HttpResponse:
    learning = _learning(request, learning_id)
    agent = agentable_of(learning.thread)
    return _done(request, agent, learning_id, lambda text: correct(request.user, learning_id, text))


@require_POST
@signed_in
def learning_take_back(request: SignedInRequest, learning_id: UUID) -> HttpResponse:
    learning = _learning(request, learning_id)
    agent = agentable_of(learning.thread)
    return _done(request, agent, learning_id, lambda _text: take_back(request.user, learning_id))


@require_POST
@signed_in
def learning_erase(request: SignedInRequest, learning_id: UUID) -> HttpResponse:
    learning = _learning(request, learning_id)
    try:
        erase(learning)
    except LearningRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("It is deleted for good."))
    return redirect("memory", learning.thread_id)


def _agent(request: SignedInRequest, thread_id: UUID) -> Agentable:
    """One that learns: a helper does not, it has no page."""
    thread = get_object_or_404(Thread.objects.for_user(request.user), pk=thread_id)
    agent = agentable_of(thread)
    if not agent.remembers:
        raise Http404
    return agent


def _learning(request: SignedInRequest, learning_id: UUID) -> Learning:
    return get_object_or_404(Learning.objects.for_user(request.user).select_related("thread"), pk=learning_id)


def _done(
    request: SignedInRequest, agent: Agentable, learning: UUID | None, deed: Callable[[str], AgentAction | None]
) -> HttpResponse:
    text = request.POST.get("text", "")
    try:
        action = deed(text)
    except LearningRefused as refused:
        return _page(request, agent, typed=Typed(text, str(refused), learning), status=422)
    if action is None:
        messages.error(request, _("It holds no more, so nothing was changed."))
        return redirect("memory", agent.thread_id)
    return redirect(done_at(reverse("memory", args=[agent.thread_id]), action))


def _sentence(action: AgentAction) -> str:
    """What was done, to be said at once."""
    words = {
        TOLD: _("Kept in mind: %(text)s"),
        REPLACED: _("Corrected: %(text)s"),
        FORGOTTEN: _("Forgotten: what came of “%(text)s”"),
    }
    return words.get(action.tool, _("Taken back: %(text)s")) % {"text": action.summary}


def _page(request: SignedInRequest, agent: Agentable, *, typed: Typed | None = None, status: int = 200) -> HttpResponse:
    done = done_here(request, agent.thread)
    mine = Learning.objects.filter(thread=agent.thread_id).select_related("message", "replaced_by")
    documents = Document.objects.filter(thread=agent.thread_id)
    page = {
        "agent": agent,
        "thread": agent.thread,
        "here": agent.pk,
        "learnings": mine.current(),
        "former": mine.exclude(ended_at=None).order_by("-ended_at")[:FORMER],
        "documents": documents[:DOCUMENTS],
        "has_memory": documents.filter(name=MEMORY).exists(),
        "longest": Learning.TEXT_LENGTH,
        "done": done,
        "words": _sentence(done) if done else "",
        "here_again": reverse("memory", args=[agent.thread_id]),
        "typed": typed,
        "opened": request.GET.get("open", ""),
    }
    return render(request, "agents/memory.html", page, status=status)
