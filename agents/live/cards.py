"""The question that a call puts to its user: may it run, or what became of it."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext as _

from agents.proposed_call import ProposedCall
from memory.encoding import dumps
from memory.text import UNSEEN, newlines
from tools import files, registry, trust
from tools.base import Effect, Reversal
from tools.file_changes import KIND
from tools.models import ActionStatus, AgentAction, ApprovalState, Resolution
from tools.way_back import way_back

SHOWN = 4_000


@dataclass(frozen=True, slots=True)
class Button:
    """`address` is where it posts to; `kind` is a kind of button of the style sheet; `key` presses it in the inbox."""

    words: str
    address: str
    kind: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """What is shown of an argument, letter by letter if it `is_code`."""

    name: str
    value: str
    is_code: bool


@dataclass(frozen=True, slots=True)
class Field:
    """An argument of a call; one that is no text is shown as JSON."""

    name: str
    value: str
    is_text: bool
    is_code: bool

    @property
    def rows(self) -> int:
        return min(12, self.value.count("\n") + len(self.value) // 80 + 1)

    def read(self, text: str) -> object:
        """What a person has made of it. Raises: ValueError when it is to be JSON and is not."""
        return newlines(text) if self.is_text else json.loads(text)


@dataclass(frozen=True, slots=True)
class Card:
    """`lines` are what the call would do.

    why: what is known of it, above the lines. stakes: what a decision cannot take back, beside the buttons; `harmless`
    when there is nothing like that. reject: where a rejection posts to, which may say why. asked, expires: of an
    approval.
    about: the thing that it would change, when its sentence does not say so. changes: what it would change, as things
    stand, (name, text that goes, text that comes); what stands there is not among the lines again. sources: whose texts
    its agent had read. edit: where another form of the call posts to; fields: what may be changed. scopes: what may be
    allowed from now on.
    """

    action: UUID
    lines: list[Line]
    buttons: list[Button]
    why: str = ""
    stakes: str = ""
    reject: str = ""
    asked: datetime | None = None
    about: str = ""
    changes: list[tuple[str, str, str]] = field(default_factory=list)
    sources: str = ""
    edit: str = ""
    fields: list[Field] = field(default_factory=list)
    scopes: Sequence[trust.Scope] = ()
    expires: datetime | None = None
    harmless: bool = False


def is_asked_about(action: AgentAction) -> bool:
    """Whether a call waits for its user."""
    return awaits_approval(action) or (action.status == ActionStatus.UNKNOWN and not action.resolution)


def card(action: AgentAction, earned: trust.Earned | None = None) -> Card | None:
    """The card of a call that waits for its user; None when nothing is asked. earned: of its user, for many cards."""
    if awaits_approval(action):
        return _approval(action, earned or trust.Earned(action.user_id))
    if is_asked_about(action):
        why = action.error or action.output or _("It is not known whether this took effect.")
        return Card(action.pk, list(_lines(action)), _resolutions(action), why=cut(why))
    return None


def pairs(action: AgentAction) -> list[tuple[str, str]]:
    """What the call was asked, as (name, value)."""
    return [(_spoken(name), plain(value)) for name, value in _arguments(action).items()]


def _lines(action: AgentAction) -> Iterator[Line]:
    code = _code(action)
    for name, value in _arguments(action).items():
        yield Line(_spoken(name), plain(value), name in code)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def _arguments(action: AgentAction) -> dict[str, Any]:
    """In the order of the tool: the database keeps none."""
    arguments: dict[str, Any] = action.arguments if isinstance(action.arguments, dict) else {}
    tool = registry.find(action.tool, action.user_id)
    asked = dict.fromkeys(name for name in (tool.Arguments.model_fields if tool else ()) if name in arguments)
    return {name: arguments[name] for name in asked | dict.fromkeys(arguments)}


def _code(action: AgentAction) -> frozenset[str]:
    tool = registry.find(action.tool)
    return tool.code if tool else frozenset()


def plain(value: object) -> str:
    """Text as it is, anything else as JSON, whole: it is what is approved. What cannot be seen, or turns the order of
    reading, is named (threat T17)."""
    return UNSEEN.sub(_named, value if isinstance(value, str) else dumps(value).decode())


def _named(found: re.Match[str]) -> str:
    return f"[U+{ord(found[0]):04X}]"


def cut(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + "…"


def awaits_approval(action: AgentAction) -> bool:
    waiting = action.status in (ActionStatus.INTENT, ActionStatus.PROPOSED)
    approval = getattr(action, "approval", None)
    return waiting and approval is not None and approval.state == ApprovalState.REQUESTED


def _approval(action: AgentAction, earned: trust.Earned) -> Card:
    proposal = ProposedCall(action)
    changes = list(_changes(proposal))
    shown = {name for name, _goes, _comes in changes} | ({"id"} if changes else set())
    return Card(
        action.pk,
        [line for line in _lines(action) if line.name not in shown],
        [Button(_("Approve once"), _decide(proposal, "approve"), "primary", "a")],
        about=proposal.target,
        changes=changes,
        sources=", ".join(action.approval.sources),
        stakes=_stakes(action),
        reject=_decide(proposal, "reject"),
        edit=reverse("approval_edit", args=[action.pk, proposal.shown]),
        fields=fields(action),
        scopes=earned.scopes(action.approval),
        asked=action.approval.requested_at,
        expires=action.approval.expires_at,
        harmless=action.reversal in (Reversal.NOTHING, Reversal.UNDOABLE),
    )


def _decide(proposal: ProposedCall, decision: str) -> str:
    return reverse("approval_decide", args=[proposal.action.pk, proposal.shown, decision])


def target(action: AgentAction) -> str:
    """The name, when it was asked for, of what a recorded call gives an id of alone; empty when it says so itself."""
    approval = getattr(action, "approval", None)
    return ProposedCall(action).target if approval is None or approval.target is None else str(approval.target)


def _changes(proposal: ProposedCall) -> Iterator[tuple[str, str, str]]:
    """What the call would change, as things stand: (name, text that goes, text that comes)."""
    for change in proposal.would.changes if proposal.would else ():
        if change.kind == KIND:
            size = files.in_words(int(str((change.before or {}).get("size", 0))))
            yield change.name, _("what it holds now (%(size)s)") % {"size": size}, ""
        elif change.after is None:
            yield change.name, plain((change.before or {}).get("body", "")), ""
        else:
            for name, after in change.after.items():
                yield _spoken(name), plain((change.before or {}).get(name, "")), plain(after)


def fields(action: AgentAction) -> list[Field]:
    """What a person may change of a call before it runs. What is no text is written as JSON."""
    code = _code(action)
    return [
        Field(name, value if isinstance(value, str) else dumps(value).decode(), isinstance(value, str), name in code)
        for name, value in _arguments(action).items()
    ]


def _resolutions(action: AgentAction) -> list[Button]:
    check = [Button(_("Check"), _resolve(action, Resolution.CHECKED))] if action.effect == Effect.VERIFIABLE else []
    return [
        *check,
        Button(_("It happened"), _resolve(action, Resolution.HAPPENED)),
        Button(_("Run again"), _resolve(action, Resolution.RUN_AGAIN), "quiet"),
    ]


def _resolve(action: AgentAction, resolution: Resolution) -> str:
    return reverse("action_resolve", args=[action.pk, resolution])


def _stakes(action: AgentAction) -> str:
    return f"{way_back(action.reversal, registry.find(action.tool, action.user_id))}."
