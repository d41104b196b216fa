"""Sessions are archived: when they have been idle, have grown too long, or when somebody asks (mission B7, B8).

Jobs do it, beside the runs. What is due is found by the clock, so a lost job costs a minute.
"""

from uuid import UUID

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from agents.agentable import agent_kinds, agentable_of
from agents.connections import Choice, Use, choice_for
from agents.decisions import withdraw
from agents.engine import bell
from agents.engine.crashpoints import crashpoint
from agents.engine.payment import beside_seconds
from agents.engine.summaries import SummaryFailed, summarise
from agents.live.announce import announce_run
from agents.providers.base import Usage
from memory import archive, pool
from memory.archive import Holder, Outcome, Reservation
from memory.compaction import estimate
from memory.models import AgentRun, ArchiveReason, Thread, ThreadMessage
from memory.news import tell
from memory.pool import orm
from memory.text import clip
from memory.transcript import load
from tools.cancel import CancelToken
from tools.models import AgentAction
from tools.recorded import recorded

log = structlog.get_logger(__name__)

# How much of a session that is too long stays live, at most.
KEPT = 0.25
# Of a question that is open still. Characters.
ASKED = 1_000
# How much of a model's window a session may take: the rest is for the prompt, the tools and the answer.
WINDOW_USED = 0.7

DUE = """
SELECT t.id, t.user_id FROM memory_thread t
WHERE t.live_run IS NULL AND t.kind = ANY(%(kinds)s)
  AND t.active_at < clock_timestamp() - %(idle)s * interval '1 minute'
  AND (SELECT e.created_at FROM memory_historyentry e WHERE e.thread_id = t.id AND e.seq >= t.from_seq
       ORDER BY e.seq DESC LIMIT 1) < clock_timestamp() - %(idle)s * interval '1 minute'
  AND NOT EXISTS (SELECT FROM memory_agenthistory a
    WHERE a.thread_id = t.id AND a.generation = t.generation AND a.due_at > clock_timestamp())
  AND NOT EXISTS (SELECT FROM tools_approval p WHERE p.thread_id = t.id AND p.state = 'requested')
UNION
SELECT t.id, t.user_id FROM memory_agenthistory a
JOIN memory_thread t ON t.id = a.thread_id AND t.generation = a.generation
WHERE a.status = 'reserved' AND a.due_at <= clock_timestamp() AND t.live_run IS NULL
"""

# Of each user only a few at a time: a worker does one after another of them.
ALL_DUE = f"""
SELECT id, user_id FROM (
  SELECT due.*, row_number() OVER (PARTITION BY user_id ORDER BY id) AS place FROM ({DUE}) AS due) AS placed
WHERE place <= 20 ORDER BY place LIMIT 200
"""  # noqa: S608 (constants only)
IS_DUE = f"SELECT EXISTS (SELECT FROM ({DUE}) AS due WHERE id = %(thread)s)"  # noqa: S608 (constants only)


def ring_for_due() -> int:
    """Ring for every session that has been idle for long, unless something in it waits for its user's approval, and
    for every archive that somebody has begun and left; returns how many there were. Ringing twice is harmless: one of
    two archivers finds the session reserved, or not due any more."""
    due = pool.execute(ALL_DUE, _idleness())
    for thread_id, user_id in due:
        if not bell.ring_archive(thread_id, user_id, ArchiveReason.IDLE):
            break  # each further try would wait for Redis as long again
    return len(due)


def is_due(thread_id: UUID) -> bool:
    """Whether the session is still one that `ring_for_due` rings for: its user may have gone on since."""
    return bool(pool.execute(IS_DUE, _idleness() | {"thread": thread_id})[0][0])


def watch(thread: Thread, usage: Usage, window: int | None, *, has_sessions: bool, is_over: bool = False) -> None:
    """After a run: ring when the session has outgrown its budget, by the last call's count or, without one, by a
    look at the rows. `window`: tokens that the model takes, as far as that is known."""
    if not has_sessions:
        return
    if is_over:
        _put_away(thread)
        return
    if usage.input_tokens is None:
        bell.ring_measure(thread.pk, thread.user_id)
    elif usage.input_tokens + (usage.output_tokens or 0) > budget(window):
        bell.ring_archive(thread.pk, thread.user_id, ArchiveReason.LONG)


def _put_away(thread: Thread) -> None:
    """Ring for a session unless something in it waits for its user (mission A13)."""
    with orm():
        waits = AgentAction.objects.proposed().filter(thread=thread).exists()
    if not waits:
        bell.ring_archive(thread.pk, thread.user_id, ArchiveReason.FEED)


def budget(window: int | None) -> int:
    """Tokens that a session may have: what this server allows, or less when the model takes less."""
    allowed: int = settings.WAYMARK_SESSION_TOKENS
    return min(allowed, int(window * WINDOW_USED)) if window else allowed


def measure(thread_id: UUID) -> None:
    """Archive what is too long of a session whose tokens nobody has counted."""
    with orm():
        thread = Thread.objects.filter(pk=thread_id).first()
        choice = _choice(thread, Use.AGENT) if thread else None
    allowed = budget(choice.capabilities.context_length if choice else None)
    if thread and estimate(load(thread_id, thread.from_seq, recorded)) > allowed:
        archive_session(thread_id, ArchiveReason.LONG)


def archive_session(thread_id: UUID, reason: ArchiveReason, *, at_once: bool = False) -> Outcome | None:
    """Archive the live session of a thread, the older part of it when it is too long. None: not now, or the summary
    has failed, which is on record."""
    with orm():
        thread = Thread.objects.filter(pk=thread_id).first()
        if thread is None or not agentable_of(thread).has_sessions:
            return None
        choice = _choice(thread)
        reserved = _reserved(thread_id, reason, KEPT if reason == ArchiveReason.LONG else 0, at_once=at_once)
    if reserved is None:
        return None
    done = complete(reserved, choice)
    if done is Outcome.DONE:
        _announce(thread)
        _remind(thread)
    return done


def _remind(thread: Thread) -> None:
    """Keep a question in the agent's mind that its user has not answered: they may do so in days, with a word."""
    with orm():
        question = ThreadMessage.objects.unanswered().filter(thread=thread).order_by("-position").first()
        if question:
            tell(thread.pk, f"You have asked the user, who has said nothing since: {clip(question.content, ASKED)}")


def shorten_session(holder: Holder, thread_id: UUID, stop: CancelToken, share: float) -> bool:
    """Archive the older part of the session that a run is working on, under its lease; `share` of it stays."""
    with orm():
        thread = Thread.objects.get(pk=thread_id)
        choice = _choice(thread)
        reserved = _reserved(thread_id, ArchiveReason.LONG, share, holder)
    if reserved is None or complete(reserved, choice, stop) is not Outcome.DONE:
        return False
    _remind(thread)
    return True


def complete(reserved: Reservation, choice: Choice | None, stop: CancelToken | None = None) -> Outcome | None:
    """Sum up what is reserved, unless that is done already, and finish."""
    try:
        made = reserved.summary or summarise(reserved, choice, stop)
    except SummaryFailed as failed:
        with orm():
            archive.fail(reserved, str(failed))
        log.warning("session not archived", thread=str(reserved.thread_id), error=str(failed))
        return None
    crashpoint("D10.before")
    with orm(), transaction.atomic():
        done = archive.finish(reserved, made)
        if done is Outcome.DONE:
            withdraw(_cut_off(reserved), "The session that it belongs to was archived.")
    crashpoint("D10.after")
    log.info("session archived", thread=str(reserved.thread_id), outcome=done, entries=len(reserved.entries))
    return done


def _reserved(
    thread_id: UUID, reason: ArchiveReason, share: float, holder: Holder | None = None, *, at_once: bool = False
) -> Reservation | None:
    crashpoint("D9.before")
    reserved = archive.reserve(thread_id, reason, seconds=beside_seconds(), share=share, holder=holder, at_once=at_once)
    crashpoint("D9.after")
    return reserved


def _cut_off(reserved: Reservation) -> list[AgentAction]:
    """Calls that wait for approval and are archived with what was asked: nobody would know any more what they are about
    (case CON-05 d)."""
    calls = {(entry.run, call.id) for entry in reserved.entries for call in entry.message.calls}
    proposed = AgentAction.objects.proposed().filter(thread=reserved.thread_id)
    return [action for action in proposed if (action.run_id, action.call_id) in calls]


def _choice(thread: Thread, use: Use = Use.ASIDE) -> Choice | None:
    """A connection whose key no field key opens any more is as good as none."""
    try:
        return choice_for(thread, use)
    except ImproperlyConfigured:
        log.warning("no model for summaries", thread=str(thread.pk))
        return None


def _announce(thread: Thread) -> None:
    """Whoever looks at the thread sees its last turn change."""
    with orm():
        last = AgentRun.objects.filter(thread=thread).select_related("thread").order_by("-created_at").first()
        if last is not None:
            announce_run(last)


def _idleness() -> dict[str, object]:
    kinds = [kind.kind() for kind in agent_kinds() if kind.has_sessions]
    return {"kinds": kinds, "idle": settings.WAYMARK_SESSION_IDLE_MINUTES}
