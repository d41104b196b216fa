"""Before a run is claimed: who is to work, with which model, tools and prompt."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from uuid import UUID

from django.apps import apps
from django.conf import settings
from django.utils import timezone

from agents.agentable import Agentable
from agents.connections import Choice, Chosen, choose
from agents.engine.journal import NextCall
from agents.engine.kept import keep
from agents.engine.retries import RetryPolicy
from agents.models import ModelConnection
from agents.planned import to_remind_of
from agents.prices import PRICES, read
from agents.prompts import render
from agents.providers.pricing import Prices
from agents.state import facts
from memory import pool
from memory.context import NOTES_LISTED, Context, context_for, learned, noted
from memory.documents import TOLD, told, told_parameters
from memory.encoding import dumps
from memory.hot import columns, instance, load, width
from memory.marks import mark, merged
from memory.models import LIVE, Thread, Trigger
from memory.pool import orm
from memory.recall import LAST_SUMMARIES, Summary, section
from memory.skills import USABLE, section as skill_section
from tools.base import Audience, Needs, ToolSpec
from tools.policy import Policy, off
from tools.registry import AnyTool, tools_for
from tools.trust import is_trusted


@dataclass(slots=True)
class Summons:
    """Everything a run needs that is read, not claimed.

    standing: what its user has laid down for it, documents and skills, as it stands in `system`.
    tools: those that were offered when it began. policy, packs: as they were looked at last (`look_again`).
    choice: the model that answers; the run itself changes it, to the user's stand-in (see `engine.standing_in`).
    stand_in: who answers when the choice is out of reach.
    kept: the digests of the system prompt and the tools, once they are on record.
    above: the thread that it reports to, if there is one.
    clipped_seq: the messages before this place of the history are sent cut (see `engine.shortening`).
    """

    agentable: Agentable
    thread: Thread
    trigger: str
    context_type: str
    choice: Choice
    system: str
    standing: str
    time_zone: str
    tools: Mapping[str, AnyTool]
    context: Context
    prices: Prices
    policy: Policy = field(default_factory=Policy)
    packs: Collection[str] = ()
    is_staff: bool = False
    stand_in: ModelConnection | None = None
    kept: Sequence[bytes | None] = (None, None)
    clipped_seq: int | None = None
    above: Sequence[UUID] = ()

    @property
    def next_call(self) -> NextCall:
        system, tools = self.kept
        endpoint, from_seq = self.choice.endpoint, self.thread.from_seq
        return NextCall(endpoint.kind, self.choice.model, system, tools, from_seq, self.clipped_seq)

    def keep_prompt(self) -> None:
        """Have on record what stands before the history, before a call is started that sends it (mission E2)."""
        self.kept = keep(self.thread.pk, self.system, dumps(self.specs).decode())

    @property
    def converses(self) -> bool:
        return self.agentable.audience is Audience.CONVERSATION

    @property
    def is_attended(self) -> bool:
        """Whether somebody waits for the run: what nobody waits for leaves some of a budget to what somebody does."""
        return self.converses and self.trigger in (Trigger.MESSAGE, Trigger.RETRY, Trigger.DECISION)

    @property
    def specs(self) -> list[ToolSpec]:
        return [tool.spec() for tool in self.tools.values()]

    def offers(self, name: str) -> bool:
        """Whether a tool is offered, and was not switched off since."""
        tool = self.tools.get(name)
        return tool is not None and name not in off(self.policy.chosen) and tool.pack in ("", *self.packs)

    def look_again(self) -> None:
        """Read anew what the owner lets it use: they may have changed that since the run began."""
        now = load(type(self.agentable), "x.thread_id = %(thread)s", {"thread": self.thread.pk})
        if now is None:
            return
        with orm():  # as in `summon`
            modes, self.packs = now.tool_modes(), now.tool_packs()
        if modes != self.policy.chosen:
            self.policy = replace(self.policy, chosen=modes)


# A note is listed with its beginning only. Characters.
BODY_READ = 400

SUMMON = f"""
SELECT run.trigger, run.context_type, coalesce(u.time_zone, 'Etc/UTC'), person.is_staff,
  (SELECT coalesce(jsonb_agg(jsonb_build_array(n.title, n.body, n.sources) ORDER BY n.created_at), '[]') FROM (
    SELECT title, left(body, {BODY_READ}) AS body, sources, created_at FROM memory_note WHERE thread_id = t.id
    ORDER BY created_at DESC LIMIT {NOTES_LISTED}) n),
  (SELECT coalesce(jsonb_agg(jsonb_build_array(l.number, l.text, l.sources) ORDER BY l.number), '[]')
    FROM memory_learning l WHERE l.thread_id = t.id AND l.ended_at IS NULL),
  {TOLD}, {USABLE},
  EXISTS (SELECT FROM agents_planitem p WHERE p.thread_id = t.id AND p.status <> 'dropped'),
  EXISTS (SELECT FROM tools_workspacefile f WHERE f.workspace_id = t.id),
  EXISTS (SELECT FROM tools_mcpserver m WHERE m.user_id = t.user_id),
  {LAST_SUMMARIES}, {PRICES.format(user="t.user_id")},
  {columns(Thread, "t")}, {columns(ModelConnection, "c")}, {columns(ModelConnection, "s")}
FROM memory_agentrun run
JOIN memory_thread t ON t.id = run.thread_id
JOIN auth_user person ON person.id = t.user_id
LEFT JOIN agents_useragent u ON u.user_id = t.user_id
LEFT JOIN agents_modelconnection c ON c.user_id = t.user_id AND c.is_default
LEFT JOIN agents_modelconnection s ON s.id = u.stand_in_id
WHERE run.id = %(run)s AND run.status = ANY(%(live)s)
"""  # noqa: S608 (columns of models)


def summon(run_id: UUID) -> Summons | None:
    """Read what the run needs. None: the run is over or gone, so there is nothing to claim."""
    rows = pool.execute(SUMMON, {"run": run_id, "live": [*LIVE]} | told_parameters())
    if not rows:
        return None
    trigger, context_type, time_zone, is_staff, notes, learnings, written, skills, *others = rows[0]
    has_plan, has_files, has_servers, summaries, prices, *rest = others
    values = iter(rest)
    thread = instance(Thread, [*islice(values, width(Thread))])
    default, stand_in = _connection(values), _connection(values)
    agentable = load(apps.get_model(thread.kind), "x.thread_id = %(thread)s", {"thread": thread.pk})
    if not isinstance(agentable, Agentable):
        return None
    now = timezone.now()
    if not agentable.remembers:
        notes, learnings, written, skills = [], [], [], []
    documents = told(written, now, time_zone)
    standing = documents.prefix + skill_section(skills)
    if sources := merged(documents.sources, *(each[2] for each in (*notes, *learnings))):
        mark(thread.pk, sources)  # before the run is claimed, which reads the mark
    with orm():  # a kind's own hooks may ask for more
        modes, packs, parent = agentable.tool_modes(), agentable.tool_packs(), agentable.reports_to()
        grown = {Needs.ARCHIVES: thread.generation, Needs.SKILLS: skills}
        has = agentable.has | {need for need, some in grown.items() if some}
        remembered: dict[str, str] = {}
        if agentable.remembers:
            remembered = {"learnings": learned(learnings), "notes": noted(notes), **documents.remembered}
            remembered |= agentable.remembered()
        if has_plan:
            remembered["plan"] = to_remind_of(thread.pk)
        if has_files:
            remembered["state"] = facts(thread.pk)
        return Summons(
            agentable=agentable,
            thread=thread,
            trigger=trigger,
            choice=choose(Chosen(_own(agentable), default), staff=is_staff),
            context_type=context_type,
            system=system_prompt(agentable, context_type, standing, summaries, time_zone),
            standing=standing,
            time_zone=time_zone,
            tools=tools_for(
                agentable.audience,
                off(modes),
                packs,
                has=has,
                user_id=thread.user_id if has_servers else None,
                context_type=context_type,
            ),
            policy=Policy(modes, partial(is_trusted, agentable.trusted_as())),
            packs=packs,
            context=context_for(thread, now, time_zone, remembered),
            prices=read(prices),
            is_staff=is_staff,
            stand_in=stand_in,
            above=[parent.pk] if parent else (),
        )


def retry_policy() -> RetryPolicy:
    """The figures of this server."""
    return RetryPolicy(
        held_tries=settings.WAYMARK_RETRY_HELD_TRIES,
        held_seconds=settings.WAYMARK_RETRY_HELD_SECONDS,
        held_longest=settings.WAYMARK_RETRY_HELD_LONGEST,
        first_seconds=settings.WAYMARK_RETRY_FIRST_SECONDS,
        rate_limit_tries=settings.WAYMARK_RETRY_RATE_LIMIT_TRIES,
        network_tries=settings.WAYMARK_RETRY_NETWORK_TRIES,
        other_tries=settings.WAYMARK_RETRY_OTHER_TRIES,
        longest_seconds=settings.WAYMARK_RETRY_LONGEST_SECONDS,
    )


def system_prompt(
    agentable: Agentable, context_type: str, standing: str, summaries: Sequence[Summary], time_zone: str
) -> str:
    """What stands before every history of a session, the same bytes from call to call (mission C3)."""
    return render(*agentable.prompt_for(context_type)) + standing + section(summaries, time_zone)


def _connection(values: Iterator[object]) -> ModelConnection | None:
    """The next connection of a row, from a join that may have found none."""
    found = [*islice(values, width(ModelConnection))]
    return instance(ModelConnection, found) if found[0] is not None else None


def _own(agentable: Agentable) -> ModelConnection | None:
    """The connection of this agent alone."""
    own = agentable.connection_id()
    return load(ModelConnection, "x.id = %(own)s", {"own": own}) if own else None
