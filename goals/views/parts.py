"""What a reflective companion keeps of a person: read, confirmed, decided about, deleted (mission D11)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from pydantic import JsonValue

from agents.live.cards import plain
from agents.pages import done_at, done_here
from agents.signed_in import SignedInRequest, signed_in
from goals.models import Goal
from goals.part_shapes import DECISIONS
from tools.base import Pack
from tools.models import AgentAction
from tools.part_deeds import confirm_part, decide_proposal, delete_record
from tools.part_models import ATTRIBUTES, KINDS, Assessment, Part, Proposal, Record
from tools.parts import RecordRefused, digest_of
from tools.quotes import Passage, Quote, passages, read

SHOWN: Final = 20
"""Records of a kind on one page."""


@dataclass(frozen=True, slots=True)
class Said:
    """A quote on the page. passage: None when its message is gone. is_newer: than what its person has confirmed."""

    quote: Quote
    passage: Passage | None
    is_newer: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """A record on the page. title, role, lines (what, texts): with what cannot be seen by its name. shown: `digest_of`
    it."""

    record: Record
    title: str
    said: list[Said]
    role: str = ""
    lines: Sequence[tuple[str, list[str]]] = ()
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """Records of a kind on one page. newer, older: the queries of the pages before and after it, if there are any."""

    records: list[Shown]
    newer: str
    older: str


@require_GET
@signed_in
def goal_parts(request: SignedInRequest, goal_id: UUID) -> HttpResponse:
    return _page(request, _goal(request, goal_id))


@require_POST
@signed_in
def part_confirm(request: SignedInRequest, goal_id: UUID, part_id: UUID) -> HttpResponse:
    return _decided(request, goal_id, Part, part_id, partial(confirm_part, request.user, part_id))


@require_POST
@signed_in
def proposal(request: SignedInRequest, goal_id: UUID, proposal_id: UUID, decision: str) -> HttpResponse:
    if (state := DECISIONS.get(decision)) is None:
        raise Http404
    decide = partial(decide_proposal, request.user, proposal_id, state)
    return _decided(request, goal_id, Proposal, proposal_id, decide)


@require_POST
@signed_in
def record_delete(request: SignedInRequest, goal_id: UUID, kind: str, record_id: UUID) -> HttpResponse:
    if (model := KINDS.get(kind)) is None:
        raise Http404
    delete = partial(delete_record, request.user, model, record_id)
    return _decided(request, goal_id, model, record_id, lambda _shown: delete())


def _goal(request: SignedInRequest, goal_id: UUID) -> Goal:
    return get_object_or_404(Goal.objects.for_user(request.user).select_related("thread"), pk=goal_id)


def _decided(
    request: SignedInRequest,
    goal_id: UUID,
    model: type[Record],
    record_id: UUID,
    decision: Callable[[str], AgentAction | None],
) -> HttpResponse:
    """What follows a press of a button about a record of this goal; `shown` is what the person has looked at."""
    goal = _goal(request, goal_id)
    get_object_or_404(model._default_manager.filter(thread=goal.thread_id, user=request.user), pk=record_id)
    try:
        action = decision(request.POST.get("shown", ""))
    except RecordRefused as refused:
        return _page(request, goal, error=str(refused), status=422)
    if action is None:
        raise Http404
    return redirect(done_at(reverse("goal_parts", args=[goal.pk]), action, request.GET.dict()))


def _page(request: SignedInRequest, goal: Goal, *, error: str = "", status: int = 200) -> HttpResponse:
    found = {kind: _some(request, goal, model) for kind, model in KINDS.items()}
    evidence = (read(getattr(record, "evidence", [])) for page in found.values() for record in page)
    around = passages(chain.from_iterable(evidence))
    done = done_here(request, goal.thread)
    page = {
        "here": goal.pk,
        "goal": goal,
        "kept": {kind: _kept(request, kind, records, around) for kind, records in found.items()},
        "is_empty": not any(page.paginator.count for page in found.values()),
        "is_on": Pack.REFLECTIVE in goal.packs,
        "error": error,
        "done": done,
        "words": _sentence(done) if done else "",
        "here_again": reverse("goal_parts", args=[goal.pk]),
    }
    return render(request, "goals/parts.html", page, status=status)


def _some(request: SignedInRequest, goal: Goal, model: type[Record]) -> "Page[Record]":
    """The newest records of a kind, or those of the page that `?<kind>=` asks for."""
    kept = model._default_manager.filter(thread=goal.thread_id, user=request.user).order_by("-created_at", "-id")
    return Paginator(kept, SHOWN).get_page(request.GET.get(model.kind()))


def _kept(request: SignedInRequest, kind: str, page: "Page[Record]", around: Mapping[Quote, Passage]) -> Kept:
    newer = _query(request, kind, page.previous_page_number()) if page.has_previous() else ""
    older = _query(request, kind, page.next_page_number()) if page.has_next() else ""
    return Kept([_shown(record, around) for record in page], newer, older)


def _query(request: SignedInRequest, kind: str, number: int) -> str:
    asked = request.GET.copy()
    asked.pop("done", None)
    asked[kind] = str(number)
    return asked.urlencode()


def _shown(record: Record, around: Mapping[Quote, Passage]) -> Shown:
    title = plain(record.title())
    match record:
        case Part():
            known = read(record.confirmed["evidence"]) if record.confirmed else None
            said = _said(record.evidence, around, known)
            return Shown(record, title, said, plain(record.role), _lines(record), digest_of(record))
        case Assessment():
            return Shown(record, title, _said(record.evidence, around))
        case Proposal():
            return Shown(record, title, [], shown=digest_of(record))
        case _:
            raise AssertionError(record)


def _said(evidence: list[JsonValue], around: Mapping[Quote, Passage], known: list[Quote] | None = None) -> list[Said]:
    return [Said(each, around.get(each), known is not None and each not in known) for each in read(evidence)]


def _lines(part: Part) -> list[tuple[str, list[str]]]:
    words = {"beliefs": _("Believes"), "fears": _("Fears"), "needs": _("Needs"), "body": _("Felt in the body")}
    return [(words[name], [*map(plain, texts)]) for name in ATTRIBUTES if (texts := part.attributes.get(name))]


def _sentence(action: AgentAction) -> str:
    """What was done, to be said at once."""
    words = {
        "confirm_part": _("“%(name)s” is confirmed."),
        "accept_proposal": _("Accepted: “%(name)s”."),
        "decline_proposal": _("Declined: “%(name)s”."),
    }
    return words.get(action.tool, _("“%(name)s” is deleted.")) % {"name": plain(action.summary)}
