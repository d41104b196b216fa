"""D1 and D2: a run is taken with the messages that wait for it, and its first model call starts."""

from uuid import UUID

from django.conf import settings
from psycopg.types.json import Jsonb

from agents.engine.crashpoints import crashpoint
from agents.engine.journal.fragments import CLOSE_LOST, FENCE, LOST, LOST_NOW, execute, fence_of
from agents.engine.journal.rows import Lease, LeaseLost, NextCall, Progress
from agents.engine.journal.surely import LOCK_THREAD, LOCK_THREAD_OF_RUN, looked_up, surely
from agents.engine.loop_guard import LoopGuard
from memory.context import Context
from memory.ids import new_id
from memory.messages import BLOCKS, WORDLESS, Message

# What others than the user say cannot close its tag, and so speak as the user: a model that may have read anything
# has written it.
ESCAPED = "replace(replace(replace(content, '&', '&amp;'), '<', '&lt;'), '>', '&gt;')"
TAG = "CASE WHEN metadata ? 'feed' THEN 'feed' WHEN metadata ? 'schedule' THEN 'check_in' ELSE 'task_report' END"
BY_OTHERS = f"'<' || {TAG} || '>' || {ESCAPED} || '</' || {TAG} || '>'"

# Strict vendors refuse a message without words (case HIS-04), and who reads it looks for them.
SAID = f"CASE n.content WHEN '' THEN '{WORDLESS}' ELSE n.content END"

# Messages get a new position when they are taken: they belong after what was shown while they waited.
TAKEN = f"""
q AS (
  SELECT x.id, nextval('memory_message_position') AS position FROM (
    SELECT m.id FROM memory_threadmessage m, r
    WHERE m.thread_id = r.thread_id AND NOT m.processed{{only_if}} ORDER BY m.position) x),
m AS (
  UPDATE memory_threadmessage SET processed = true, run_id = r.id, position = q.position FROM r, q
  WHERE memory_threadmessage.id = q.id AND NOT memory_threadmessage.processed
  RETURNING memory_threadmessage.id, memory_threadmessage.position, metadata ? 'decision' AS decides,
    metadata ? 'attachments' AS attaches,
    CASE source WHEN 'user' THEN content ELSE {BY_OTHERS} END AS content),
n AS (SELECT row_number() OVER (ORDER BY position) AS place, id, attaches, content FROM m),
h AS (
  INSERT INTO memory_historyentry (thread_id, run_id, seq, role, blocks)
  SELECT r.thread_id, r.id, {{first}} + n.place - 1, 'user',
    CASE WHEN n.place = 1 AND %(context)s::text <> ''
      THEN jsonb_build_array(jsonb_build_object('type', 'text', 'text', %(context)s::text)) ELSE '[]' END
    || CASE WHEN n.place = 1 AND l.news <> '' THEN jsonb_build_array(
      jsonb_build_object('type', 'text', 'text', E'<news>\n' || l.news || '</news>')) ELSE '[]' END
    || CASE WHEN n.attaches THEN (SELECT coalesce(jsonb_agg(a.block ORDER BY a.place), '[]')
      FROM memory_attachment a WHERE a.message_id = n.id) ELSE '[]' END
    || jsonb_build_array(jsonb_build_object('type', 'text', 'text', {SAID})) FROM n, r, l
  RETURNING seq, blocks),
t AS (
  UPDATE memory_thread SET pending = pending - (SELECT count(*) FROM m),
    told = CASE WHEN EXISTS (SELECT FROM m) THEN coalesce(%(told)s::jsonb, told) ELSE told END,
    news = CASE WHEN EXISTS (SELECT FROM m) THEN '' ELSE news END
  FROM r WHERE memory_thread.id = r.thread_id)
"""

CRASHED = "The worker ended before an outcome was recorded."

OPEN_STEP = """EXISTS (
  SELECT FROM agent_actions a WHERE a.run_id = run.id AND a.step = run.step AND a.repeats_id IS NULL)"""

FIRST_FREE = "(SELECT coalesce(max(e.seq), 0) + 1 FROM memory_historyentry e WHERE e.thread_id = (SELECT id FROM l))"

# Decided about, and not carried out: by the run that took the decision, because it failed before.
LEFT_OPEN = """EXISTS (
  SELECT FROM agent_actions a JOIN tools_approval p ON p.action_id = a.id
  WHERE a.thread_id = {thread} AND a.status = 'proposed' AND p.state IN ('approved', 'rejected'))"""

CLAIM = f"""
WITH l AS (
  SELECT t.id, t.user_id, t.news, t.sources FROM memory_thread t JOIN memory_agentrun r ON r.thread_id = t.id
  WHERE r.id = %(run)s FOR NO KEY UPDATE OF t),
f AS MATERIALIZED (
  SELECT %(most)s = 0 OR memory_has_slot(l.user_id, %(run)s, %(most)s) AS free FROM l),
r AS (
  UPDATE memory_agentrun AS run SET
    status = CASE run.status WHEN 'cancelling' THEN 'cancelling' ELSE 'running' END,
    fence = run.fence + 1, lease_token = %(token)s, lease_until = clock_timestamp() + %(lease)s * interval '1 second',
    started_at = coalesce(run.started_at, clock_timestamp()), due_at = NULL,
    recoveries = run.recoveries + (run.lease_token IS NOT NULL)::int,
    metered = run.metered OR EXISTS (SELECT FROM agents_budget WHERE user_id = l.user_id), {LOST}
  FROM l, f
  WHERE run.id = %(run)s AND (f.free OR run.status = 'cancelling') AND (
    run.status = 'queued' OR run.status IN ('retry_wait', 'waiting_budget') AND run.due_at <= clock_timestamp()
    OR run.status IN ('running', 'cancelling') AND run.lease_until < clock_timestamp())
  RETURNING run.id, run.thread_id, run.fence, run.step, run.status, run.recoveries, run.retries, run.guard,
    run.metered, {LOST_NOW}, {OPEN_STEP} AS open_step),
{TAKEN.format(first=FIRST_FREE, only_if=" AND NOT r.open_step")},
{CLOSE_LOST} AND r.fence > 1),
c AS (
  INSERT INTO agents_modelcall (id, run_id, step, attempt, provider, model, status)
  SELECT %(call)s, id, step, fence, %(provider)s, %(model)s, 'started' FROM r WHERE NOT r.open_step)
SELECT r.thread_id, l.user_id, r.step, r.fence, r.status = 'cancelling', r.recoveries, r.retries, r.open_step,
  coalesce((SELECT bool_or(decides) FROM m), false) OR {LEFT_OPEN.format(thread="r.thread_id")},
  r.guard, r.metered, l.sources FROM r, l
"""


CLAIMED = f"""
SELECT run.thread_id, t.user_id, run.step, run.fence, run.status = 'cancelling', run.recoveries, run.retries,
  {OPEN_STEP},
  {LEFT_OPEN.format(thread="run.thread_id")} OR EXISTS (SELECT FROM memory_threadmessage m
    WHERE m.thread_id = run.thread_id AND m.run_id = run.id AND m.processed AND m.metadata ? 'decision'),
  run.guard, run.metered, t.sources
FROM memory_agentrun run JOIN memory_thread t ON t.id = run.thread_id
WHERE run.id = %(run)s AND run.lease_token = %(token)s
"""


def claim(run_id: UUID, call: NextCall, context: Context) -> Lease | None:
    """D1 + D2: take the run, the messages that wait for it (the first preceded by the context and the thread's news),
    and start its next model call. None: somebody else has it, it is over, or its user has as many runs at work as may
    be (it then stays queued; who lets go of one of those rings for it). A run that only is to be stopped needs no slot.

    A run whose step is open (`Progress.open_step`: its worker died among the calls, or they waited for approval) takes
    no messages and starts no model call yet: the calls come first (`engine.recovery`). A model call that was open is
    settled as failed, of unknown cost, and repeated.
    """
    token, call_id = new_id(), new_id()
    parameters = {
        "run": run_id,
        "token": token,
        "most": settings.WAYMARK_MAX_RUNNING_PER_USER,
        "lease": settings.WAYMARK_LEASE_SECONDS,
        "call": call_id,
        "provider": call.provider,
        "model": call.model,
        "context": context.text,
        "told": _told(context),
        "crashed": CRASHED,
    }
    crashpoint("D1.before")
    rows = surely(lambda: execute(CLAIM, parameters, None), lambda: looked_up(LOCK_THREAD_OF_RUN, CLAIMED, parameters))
    crashpoint("D1.after")
    if not rows:
        return None
    thread_id, user_id, step, fence, cancelling, recoveries, retries, open_step, decided, guard, metered, sources = (
        rows[0]
    )
    progress = Progress(
        step=step,
        call_id=call_id,
        cancelling=cancelling,
        recoveries=recoveries,
        retries=retries,
        resumed=fence > 1,
        open_step=open_step,
        decided=decided,
        guard=LoopGuard.model_validate(guard),
        metered=metered,
        sources=sources,
    )
    return Lease(run_id, token, thread_id, user_id, fence, progress)


TAKE = f"""
WITH l AS (SELECT id, news, sources FROM memory_thread WHERE id = %(thread)s FOR NO KEY UPDATE),
r AS (
  UPDATE memory_agentrun AS run SET due_at = NULL FROM l
  WHERE run.id = %(run)s AND run.lease_token = %(token)s AND run.status IN ('running', 'cancelling')
  RETURNING run.id, run.thread_id),
{TAKEN.format(first="%(first)s", only_if="")}
SELECT (SELECT jsonb_agg(blocks ORDER BY seq) FROM h), (SELECT array_agg(id ORDER BY position) FROM m), l.sources
FROM r, l
"""


# Nobody but the run writes to its thread's history, so what stands from its next place on is what was taken.
TOOK = f"""
WITH h AS (SELECT seq, blocks FROM memory_historyentry WHERE thread_id = %(thread)s AND seq >= %(first)s),
m AS (
  SELECT id, position FROM memory_threadmessage
  WHERE thread_id = %(thread)s AND run_id = %(run)s AND processed
    AND (source = 'user' OR metadata ?| ARRAY['task', 'schedule'])
  ORDER BY position DESC LIMIT (SELECT count(*) FROM h))
SELECT (SELECT jsonb_agg(blocks ORDER BY seq) FROM h), (SELECT array_agg(id ORDER BY position) FROM m), t.sources
FROM memory_agentrun run JOIN memory_thread t ON t.id = run.thread_id WHERE {FENCE} AND EXISTS (SELECT FROM h)
"""


def take_messages(lease: Lease, context: Context | None = None) -> tuple[list[Message], list[UUID]]:
    """Take up the messages that came while the run was busy, in order; returns them and their ids in the thread.

    Args:
        context: precedes the first of them; None when the model was told already.
    """
    parameters = fence_of(lease) | {
        "thread": lease.thread_id,
        "first": lease.progress.next_seq,
        "context": context.text if context else "",
        "told": _told(context),
    }
    rows = surely(lambda: execute(TAKE, parameters, None), lambda: looked_up(LOCK_THREAD, TOOK, parameters))
    if not rows:
        raise LeaseLost
    blocks, ids, lease.progress.sources[:] = rows[0]
    taken = [Message(role="user", blocks=BLOCKS.validate_python(each)) for each in blocks or []]
    lease.progress.next_seq += len(taken)
    return taken, ids or []


def _told(context: Context | None) -> Jsonb | None:
    return None if context is None or context.told is None else Jsonb(context.told)
