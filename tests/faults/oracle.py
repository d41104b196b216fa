"""Whether anything was lost, done twice, left hanging or written wrongly: SQL over the invariants, once all is quiet.

Every rule selects what breaks it, so all of them must be empty. The ids of invariants are those of the contract that
docs/reliability.md sums up.
"""

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import orjson
import psycopg

from agents.providers.base import ModelRequest
from agents.providers.chat_body import ChatBody
from memory.messages import BLOCKS, Message
from memory.repair import repaired
from tests.faults.sink import Sink
from tests.llm_script import Request, violation

LOST, REPEATED, STUCK, HISTORY = "lost", "repeated", "stuck", "bad history"


class Rule(NamedTuple):
    kind: str
    words: str
    sql: str


class Violation(NamedTuple):
    kind: str
    words: str
    where: str


FINAL = "('succeeded', 'failed', 'cancelled')"
CALLS = """
calls AS (
  SELECT h.thread_id, h.run_id, h.seq, b->>'id' AS id FROM memory_historyentry h, jsonb_array_elements(h.blocks) b
  WHERE h.thread_id = ANY(%(threads)s) AND b->>'type' = 'tool_use'),
results AS (
  SELECT h.thread_id, h.seq, b->>'id' AS id FROM memory_historyentry h, jsonb_array_elements(h.blocks) b
  WHERE h.thread_id = ANY(%(threads)s) AND b->>'type' = 'tool_result')
"""
RULES = [
    Rule(STUCK, "I11 a run is not over", f"""
        SELECT id FROM memory_agentrun WHERE thread_id = ANY(%(threads)s) AND status NOT IN {FINAL}"""),
    Rule(STUCK, "I3 the thread names a live run although there is none", """
        SELECT id FROM memory_thread WHERE id = ANY(%(threads)s) AND live_run IS NOT NULL"""),
    Rule(STUCK, "a model call is still open", """
        SELECT c.id FROM agents_modelcall c JOIN memory_agentrun r ON r.id = c.run_id
        WHERE r.thread_id = ANY(%(threads)s) AND c.status = 'started'"""),
    Rule(STUCK, "I9 a tool call is still open", """
        SELECT id FROM agent_actions WHERE thread_id = ANY(%(threads)s) AND status IN ('intent', 'started')"""),
    Rule(LOST, "I1, I2 an acknowledged message is not there exactly once", """
        SELECT client FROM unnest(%(accepted)s::uuid[]) AS client WHERE 1 <> (
          SELECT count(*) FROM memory_threadmessage m WHERE m.client_message_id = client)"""),
    Rule(LOST, "I1 a message was never taken up", """
        SELECT id FROM memory_threadmessage WHERE thread_id = ANY(%(threads)s) AND NOT processed"""),
    Rule(LOST, "pending is not the number of messages that wait", """
        SELECT t.id FROM memory_thread t WHERE t.id = ANY(%(threads)s) AND pending <> (
          SELECT count(*) FROM memory_threadmessage m WHERE m.thread_id = t.id AND NOT m.processed)"""),
    Rule(LOST, "I1 a message is not exactly once in the history", """
        SELECT m.id FROM memory_threadmessage m WHERE m.thread_id = ANY(%(threads)s) AND m.source = 'user' AND 1 <> (
          SELECT count(*) FROM memory_historyentry h, jsonb_array_elements(h.blocks) b
          WHERE h.thread_id = m.thread_id AND h.role = 'user' AND b->>'text' = m.content)"""),
    Rule(LOST, "I1 a message was taken up by no run that ended", f"""
        SELECT m.id FROM memory_threadmessage m LEFT JOIN memory_agentrun r ON r.id = m.run_id
        WHERE m.thread_id = ANY(%(threads)s) AND m.source = 'user' AND (r.id IS NULL OR r.status NOT IN {FINAL})"""),
    Rule(LOST, "I1 a run ended without a word", f"""
        SELECT r.id FROM memory_agentrun r WHERE r.thread_id = ANY(%(threads)s) AND r.status IN {FINAL} AND NOT EXISTS (
          SELECT FROM memory_threadmessage m WHERE m.run_id = r.id AND m.source IN ('agent', 'error')
          AND m.message_type = 'text' AND m.content <> '' AND NOT coalesce((m.metadata->>'interim')::bool, false))"""),
    Rule(LOST, "a run ended as if Waymark itself were wrong", """
        SELECT id FROM memory_agentrun WHERE thread_id = ANY(%(threads)s) AND reason = 'bug'"""),
    Rule(REPEATED, "a run was answered twice", """
        SELECT m.run_id FROM memory_threadmessage m WHERE m.thread_id = ANY(%(threads)s) AND m.source = 'agent'
        AND m.message_type = 'text' AND NOT coalesce((m.metadata->>'interim')::bool, false)
        GROUP BY m.run_id HAVING count(*) > 1"""),
    Rule(HISTORY, "I9 a result without a call before it", f"""
        WITH {CALLS} SELECT r.thread_id, r.id FROM results r WHERE NOT EXISTS (
          SELECT FROM calls c WHERE c.thread_id = r.thread_id AND c.id = r.id AND c.seq < r.seq)"""),
    Rule(HISTORY, "I9 a call with two results", f"""
        WITH {CALLS} SELECT thread_id, id FROM results GROUP BY 1, 2 HAVING count(*) > 1"""),
    Rule(HISTORY, "I9 a call without a record", f"""
        WITH {CALLS} SELECT c.thread_id, c.id FROM calls c WHERE NOT EXISTS (
          SELECT FROM agent_actions a WHERE a.run_id = c.run_id AND a.call_id = c.id)"""),
    Rule(HISTORY, "I9 a call whose outcome is known has no result", f"""
        WITH {CALLS} SELECT a.thread_id, a.id FROM agent_actions a WHERE a.thread_id = ANY(%(threads)s)
        AND a.status IN ('done', 'error', 'denied') AND NOT EXISTS (
          SELECT FROM results r WHERE r.thread_id = a.thread_id AND r.id = a.call_id)"""),
    Rule(HISTORY, "two messages at one position", """
        SELECT thread_id, position FROM memory_threadmessage WHERE thread_id = ANY(%(threads)s)
        GROUP BY 1, 2 HAVING count(*) > 1"""),
    Rule(REPEATED, "I3, I4 the fence", """
        SELECT w.run_id, w.rule, w.worker FROM faults.wrongs w JOIN memory_agentrun r ON r.id = w.run_id
        WHERE r.thread_id = ANY(%(threads)s)"""),
    Rule(REPEATED, "I7 a local effect and its record differ", """
        SELECT a.id, a.status FROM agent_actions a WHERE a.thread_id = ANY(%(threads)s) AND a.tool = 'jot'
        AND (a.status = 'done')::int <> (SELECT count(*) FROM memory_note n WHERE n.title = a.id::text)"""),
]  # fmt: skip


def violations(
    database: psycopg.Connection[Any], sink: Sink, threads: Collection[UUID], accepted: Collection[UUID] = ()
) -> list[Violation]:
    """Everything that is wrong in these threads. `accepted` are the client ids that were acknowledged there."""
    wanted = {"threads": list(threads), "accepted": list(accepted)}
    found = [
        Violation(rule.kind, rule.words, " ".join(map(str, row)))
        for rule in RULES
        for row in database.execute(rule.sql, wanted).fetchall()
    ]
    return [*found, *_outside(database, sink, wanted), *_grammar(database, wanted)]


def unknown(database: psycopg.Connection[Any], threads: Collection[UUID]) -> int:
    """How many calls have an outcome that nobody knows: allowed, and told to the model."""
    sql = "SELECT count(*) FROM agent_actions WHERE thread_id = ANY(%s) AND status = 'unknown'"
    row = database.execute(sql, [list(threads)]).fetchone()
    return int(row[0]) if row else 0


def late(database: psycopg.Connection[Any], sink: Sink, threads: Collection[UUID]) -> list[Violation]:
    """I5: effects that a worker began after another one had taken its run over."""
    sql = """
        SELECT c.run_id::text, c.worker, extract(epoch FROM c.at) FROM faults.claims c
        JOIN memory_agentrun r ON r.id = c.run_id WHERE r.thread_id = ANY(%s) ORDER BY c.id"""
    claims = database.execute(sql, [list(threads)]).fetchall()
    return [
        Violation(REPEATED, "I5 an effect after the takeover", f"{each.kind} {each.call} by {each.worker}")
        for each in list(sink.happened)
        for run, worker, at in claims
        if each.run == run and each.worker != worker and each.at > at and not _again(claims, each.run, each.worker, at)
    ]


def _again(claims: Sequence[tuple[str, str, float]], run: str, worker: str, since: float) -> bool:
    """Whether that worker has claimed the run once more since then."""
    return any(claim[:2] == (run, worker) and claim[2] > since for claim in claims)


def _outside(database: psycopg.Connection[Any], sink: Sink, wanted: dict[str, Any]) -> list[Violation]:
    """Compare the record with the sink: I6 at most one start, nothing done that did not happen, nothing unrecorded."""
    sql = "SELECT id::text, tool, status FROM agent_actions WHERE thread_id = ANY(%(threads)s)"
    rows = database.execute(sql, wanted).fetchall()
    recorded = {row[0] for row in rows}
    of_them = database.execute("SELECT id::text FROM memory_agentrun WHERE thread_id = ANY(%(threads)s)", wanted)
    runs = {row[0] for row in of_them.fetchall()}
    times = {kind: sink.times(kind) for kind in ("peek", "put", "mail")}
    found = [
        Violation(REPEATED, "I6 a call took effect more than once", call) for call, n in times["mail"].items() if n > 1
    ]
    found += [
        Violation(LOST, "I9 recorded as done, but it did not happen", call)
        for call, tool, status in rows
        if tool in times and status == "done" and not times[tool][call]
    ]
    return found + [
        Violation(LOST, "an effect without a record", each.call)
        for each in list(sink.happened)
        if each.run in runs and each.call not in recorded
    ]


def _grammar(database: psycopg.Connection[Any], wanted: dict[str, Any]) -> list[Violation]:
    """The history as the model would be sent it, before a strict vendor."""
    sql = """
        SELECT thread_id, role, blocks FROM memory_historyentry WHERE thread_id = ANY(%(threads)s)
        ORDER BY thread_id, seq"""
    found = []
    for thread, rows in itertools.groupby(database.execute(sql, wanted).fetchall(), key=lambda row: row[0]):
        messages = repaired([Message(role=role, blocks=BLOCKS.validate_python(blocks)) for _, role, blocks in rows])
        body = b"".join(ChatBody("max_tokens").serialise(ModelRequest("m", "", messages), with_usage=False))
        if problem := violation(Request("POST", "", {}, body, orjson.loads(body))):
            found.append(Violation(HISTORY, problem, str(thread)))
    return found


def counted(found: Sequence[Violation]) -> Counter[str]:
    return Counter(each.kind for each in found)
