"""How far a person trusts each tool with one of their agents: what they see, and what they set (mission D9)."""

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from django.utils.translation import gettext as _, gettext_lazy
from redis import RedisError

from agents.agentable import Trusting
from agents.engine.presence import commands_withheld
from agents.refusals import Refused
from goals.models import Goal
from tools import policy, trust
from tools.base import Audience, Effect, Needs, Pack, Reversal, Topic
from tools.mcp.tool import McpTool
from tools.policy import Mode
from tools.registry import AnyTool, tools_of
from tools.way_back import way_back

_TOPICS = {
    Topic.NOTES: gettext_lazy("Notes and memory"),
    Topic.FILES: gettext_lazy("Files and commands"),
    Topic.WEB: gettext_lazy("The web"),
    Topic.PLANS: gettext_lazy("Plans, helpers and times"),
    Topic.RECORD: gettext_lazy("What was done, and undoing it"),
    Topic.MORE: gettext_lazy("More"),
}
_PACKS = {Pack.REFLECTIVE: gettext_lazy("Reflective companion")}


@dataclass(frozen=True, slots=True)
class Row:
    """A tool of an agent. words: what it does. note: what that means. modes: (value, words, possible, chosen).
    missing: why no agent is offered it now, whatever is set; else empty."""

    name: str
    words: str
    note: str
    missing: str
    modes: list[tuple[str, str, bool, bool]]
    is_off: bool


@dataclass(frozen=True, slots=True)
class Group:
    """Tools of one kind, or of one server. on: how many of them are not off."""

    words: str
    rows: list[Row]
    on: int


@dataclass(frozen=True, slots=True)
class Switch:
    """A pack of tools, as it is switched on and off. page: the name of the page where what it keeps is read."""

    name: str
    words: str
    note: str
    page: str
    is_on: bool


def groups(agent: Trusting, typed: Mapping[str, str] | None = None) -> list[Group]:
    """The tools that an agent may have been given, but for talking, by what they are about.

    typed: modes by name that stand in a form which was refused, in place of those that are kept.
    """
    modes, missing = {**agent.tool_modes(), **(typed or {})}, _missing_for(agent)
    found: dict[str, list[Row]] = {str(words): [] for words in _TOPICS.values()}
    for tool in _offered(agent, agent.tool_packs()):
        found.setdefault(_group_of(tool), []).append(_row(tool, missing(tool), modes))
    return [Group(words, rows, sum(not row.is_off for row in rows)) for words, rows in found.items() if rows]


def _missing_for(agent: Trusting) -> Callable[[AnyTool], str]:
    """Says of a tool why no agent is offered it now; staff are told the reason itself."""
    no_sandbox: list[str] = []
    with suppress(RedisError):
        no_sandbox = commands_withheld()

    def missing(tool: AnyTool) -> str:
        why = " ".join(no_sandbox) if tool.in_sandbox else tool.withheld()
        return why if agent.user.is_staff or not why else _("It is not set up on this server. Its staff can do that.")

    return missing


def modes_of(form: Mapping[str, str]) -> dict[str, str]:
    """What a posted form says of tools: `mode-<name>`."""
    return {name.removeprefix("mode-"): str(mode) for name, mode in form.items() if name.startswith("mode-")}


def switches(goal: Goal, typed: Container[str] | None = None) -> list[Switch]:
    """The packs that there are. typed: those that are on in a form which was refused."""
    note = _(
        "For looking inward: the agent keeps parts of you, assessments and proposals, each part and assessment with "
        "your own words as evidence. A part counts only once you confirm it."
    )
    on = Pack.REFLECTIVE in (goal.packs if typed is None else typed)
    return [Switch(Pack.REFLECTIVE, str(_PACKS[Pack.REFLECTIVE]), note, "goal_parts", on)]


def set_packs(goal: Goal, chosen: Iterable[str]) -> None:
    """Have just these packs on for a goal. Runs keep to those that they began with; what was kept stays, what was
    allowed without asking does not.

    Raises:
        Refused: there is no such pack.
    """
    wanted = set(chosen)
    for name in wanted - set(Pack):
        raise Refused("invalid_pack", _("There is no pack of tools “%(pack)s”.") % {"pack": name})
    for tool in _offered(goal, set(goal.packs) - wanted):
        if tool.pack:
            trust.revoke(goal.thread_id, tool.name, str(_("You switched it off.")))
    goal.packs = [pack.value for pack in Pack if pack in wanted]
    goal.save(update_fields=["packs"])


def set_modes(agent: Trusting, chosen: Mapping[str, str]) -> None:
    """Set the modes of some tools; the others stay as they are. Runs keep to those that they began with.

    Raises:
        Refused: there is no such tool, or it has no such mode.
    """
    tools = {tool.name: tool for tool in _offered(agent, agent.tool_packs())}
    for name, mode in chosen.items():
        if name not in tools or mode not in policy.modes(tools[name]):
            raise Refused("invalid_mode", _("“%(tool)s” cannot be set to “%(mode)s”.") % {"tool": name, "mode": mode})
    for name, mode in chosen.items():
        if mode != Mode.AUTO and mode != agent.tool_modes().get(name, policy.usual(tools[name])):
            trust.revoke(agent.thread_id, name, str(_("You set it to ask, or off.")))
    agent.modes = policy.valid({**agent.modes, **chosen}, _offered(agent, Pack))
    agent.save(update_fields=["modes"])


def _offered(agent: Trusting, packs: Iterable[str]) -> list[AnyTool]:
    known, has = ("", *packs), ("", Needs.ARCHIVES, Needs.SKILLS, *agent.has)
    found = [tool for tool in tools_of(agent.user_id).values() if Audience.CONVERSATION in tool.audience]
    suits = [tool for tool in found if tool.pack in known and tool.needs in has]
    return [tool for tool in suits if not tool.speaks and not tool.context_type]


def _row(tool: AnyTool, missing: str, chosen: Mapping[str, str]) -> Row:
    words = {Mode.OFF: _("Off"), Mode.ASK: _("Ask"), Mode.AUTO: _("Auto")}
    possible, now = policy.modes(tool), chosen.get(tool.name, policy.usual(tool))
    modes = [(mode.value, words[mode], mode in possible, mode == now) for mode in Mode]
    return Row(tool.name, tool.wording.deed, _note(tool), missing, modes, is_off=now == Mode.OFF)


def _group_of(tool: AnyTool) -> str:
    if isinstance(tool, McpTool):
        return tool.server
    return str(_PACKS[Pack(tool.pack)] if tool.pack else _TOPICS[tool.topic])


def _note(tool: AnyTool) -> str:
    if tool.reversal is Reversal.IRREVERSIBLE:
        return _("Cannot be undone, so it asks, but for what you allow in exactly one form")
    return way_back(tool.reversal, tool) if tool.reversal is not Reversal.NOTHING or tool.effect is Effect.PURE else ""
