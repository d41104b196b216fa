"""What a reflective companion keeps of a person: read, confirmed, decided about, deleted (mission D11)."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Final
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents.signed_in import SignedInRequest, signed_in
from goals.models import Goal
from goals.part_shapes import DECISIONS
from tools.base import Pack
from tools.models import AgentAction
from tools.part_deeds import confirm_part, decide_proposal, delete_record
from tools.part_models import ATTRIBUTES, Assessment, Part, Proposal, Record
from tools.parts import RecordRefused, digest_of
from tools.quotes import Quote, messages_of, read

KINDS: Final[dict[str, type[Record]]] = {"part": Part, "assessment": Assessment, "proposal": Proposal}


@dataclass(frozen=True, slots=True)
class Shown:
    """A record on the page. lines: (what, texts). quotes: with the whole message, which is empty when it is gone."""

    record: Record
    quotes: list[tuple[Quote, str]]
    lines: list[tuple[str, list[str]]]
    shown: str = ""


@require_GET
@signed_in
def goal_parts(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    return _page(request, _goal(request, goal_id))


@require_POST
@signed_in
def part_confirm(request: SignedInRequest, goal_id: UUID, part_id: UUID) -> HttpResponse:
    return _decided(request, goal_id, lambda shown: confirm_part(request.user, part_id, shown))


@require_POST
@signed_in
def proposal(request: SignedInRequest, goal_id: UUID, proposal_id: UUID, decision: str) -> HttpResponse:
    if (state := DECISIONS.get(decision)) is None:
        raise Http404
    return _decided(request, goal_id, lambda shown: decide_proposal(request.user, proposal_id, state, shown))


@require_POST
@signed_in
def record_delete(request: SignedInRequest, goal_id: UUID, kind: str, record_id: UUID) -> HttpResponse:
    if (model := KINDS.get(kind)) is None:
        raise Http404
    return _decided(request, goal_id, lambda _shown: delete_record(request.user, model, record_id))


def _goal(request: SignedInRequest, goal_id: UUID) -> Goal:
    return get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)


def _decided(request: SignedInRequest, goal_id: UUID, decision: Callable[[str], AgentAction | None]) -> HttpResponse:
    """The page after a press of a button; `shown` is what the person has looked at."""
    goal = _goal(request, goal_id)
    try:
        action = decision(request.POST.get("shown", ""))
    except RecordRefused as refused:
        return _page(request, goal, error=str(refused), status=422)
    if action is None:
        raise Http404
    return _page(request, goal, action=action)


def _page(
    request: SignedInRequest, goal: Goal, *, error: str = "", action: AgentAction | None = None, status: int = 200
) -> HttpResponse:
    parts = list(Part.objects.for_user(request.user).filter(thread=goal.thread_id))
    assessments = list(Assessment.objects.for_user(request.user).filter(thread=goal.thread_id).order_by("-created_at"))
    proposals = Proposal.objects.for_user(request.user).filter(thread=goal.thread_id).order_by("-created_at")
    evidence = [part.evidence for part in parts] + [kept.evidence for kept in assessments]
    messages = messages_of(chain.from_iterable(map(read, evidence)))
    page = {
        "here": goal.pk,
        "goal": goal,
        "parts": [Shown(part, _quotes(part, messages), _lines(part), digest_of(part)) for part in parts],
        "assessments": [Shown(kept, _quotes(kept, messages), []) for kept in assessments],
        "proposals": [Shown(kept, [], [], digest_of(kept)) for kept in proposals],
        "is_on": Pack.REFLECTIVE in goal.packs,
        "error": error,
        "action": action,
        "sentence": _sentence(action) if action else "",
    }
    return render(request, "goals/parts.html", page, status=status)


def _quotes(record: Part | Assessment, messages: dict[UUID, str]) -> list[tuple[Quote, str]]:
    return [(quote, messages.get(quote.message, "")) for quote in read(record.evidence)]


def _lines(part: Part) -> list[tuple[str, list[str]]]:
    words = {"beliefs": _("Believes"), "fears": _("Fears"), "needs": _("Needs"), "body": _("Felt in the body")}
    return [(words[name], part.attributes[name]) for name in ATTRIBUTES if part.attributes.get(name)]


def _sentence(action: AgentAction) -> str:
    """What was done, to be said at once, with the way back beside it."""
    words = {
        "confirm_part": _("“%(name)s” is confirmed."),
        "accept_proposal": _("Accepted: “%(name)s”."),
        "decline_proposal": _("Declined: “%(name)s”."),
    }
    return words.get(action.tool, _("“%(name)s” is deleted.")) % {"name": action.summary}
