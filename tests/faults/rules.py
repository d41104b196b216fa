"""The invariants as SQL: every rule selects what breaks it, so all of them must be empty once all is quiet.

Their ids are those of the contract that docs/reliability.md sums up.
"""

from typing import NamedTuple

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
CARRIED_OUT = "('done', 'error', 'unknown')"
CALLS = """
calls AS (
  SELECT h.thread_id, h.run_id, h.seq, b->>'id' AS id FROM memory_historyentry h, jsonb_array_elements(h.blocks) b
  WHERE h.thread_id = ANY(%(threads)s) AND b->>'type' = 'tool_use'),
results AS (
  SELECT h.thread_id, h.run_id, h.seq, b->>'id' AS id FROM memory_historyentry h, jsonb_array_elements(h.blocks) b
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
        SELECT m.thread_id, m.content FROM memory_threadmessage m
        WHERE m.thread_id = ANY(%(threads)s) AND m.source = 'user' GROUP BY 1, 2 HAVING count(*) <> (
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
          SELECT FROM calls c WHERE c.run_id = r.run_id AND c.id = r.id AND c.seq < r.seq)"""),
    Rule(HISTORY, "I9 a call with two results", f"""
        WITH {CALLS} SELECT run_id, id FROM results GROUP BY 1, 2 HAVING count(*) > 1"""),
    Rule(HISTORY, "I9 a call without a record", f"""
        WITH {CALLS} SELECT c.thread_id, c.id FROM calls c WHERE NOT EXISTS (
          SELECT FROM agent_actions a WHERE a.run_id = c.run_id AND a.call_id = c.id)"""),
    Rule(HISTORY, "I9 a call whose outcome is known has no result", f"""
        WITH {CALLS} SELECT a.thread_id, a.id FROM agent_actions a WHERE a.thread_id = ANY(%(threads)s)
        AND a.status IN ('done', 'error', 'denied') AND NOT EXISTS (
          SELECT FROM results r WHERE r.run_id = a.run_id AND r.id = a.call_id)"""),
    Rule(HISTORY, "two messages at one position", """
        SELECT thread_id, position FROM memory_threadmessage WHERE thread_id = ANY(%(threads)s)
        GROUP BY 1, 2 HAVING count(*) > 1"""),
    Rule(REPEATED, "I3, I4 the fence", """
        SELECT w.run_id, w.rule, w.worker FROM faults.wrongs w JOIN memory_agentrun r ON r.id = w.run_id
        WHERE r.thread_id = ANY(%(threads)s)"""),
    Rule(REPEATED, "I7 a local effect and its record differ", """
        SELECT a.id, a.status FROM agent_actions a WHERE a.thread_id = ANY(%(threads)s) AND a.tool IN ('jot', 'balk')
        AND (a.status = 'done')::int <> (SELECT count(*) FROM memory_note n WHERE n.title = a.id::text)"""),
    Rule(STUCK, "D4 an approval is open although its run is over", """
        SELECT p.action_id FROM tools_approval p JOIN agent_actions a ON a.id = p.action_id
        WHERE p.thread_id = ANY(%(threads)s) AND p.state = 'requested' AND a.status <> 'proposed'"""),
    Rule(LOST, "D4 what was approved was not carried out", f"""
        SELECT a.id, a.status FROM tools_approval p JOIN agent_actions a ON a.id = p.action_id
        JOIN memory_agentrun r ON r.id = a.run_id WHERE p.thread_id = ANY(%(threads)s) AND p.state = 'approved'
        AND a.status NOT IN {CARRIED_OUT} AND r.status <> 'cancelled'"""),
    Rule(REPEATED, "D4 a call was carried out that nobody had approved", f"""
        SELECT a.id, p.state FROM tools_approval p JOIN agent_actions a ON a.id = p.action_id
        WHERE p.thread_id = ANY(%(threads)s) AND p.state <> 'approved' AND a.status IN {CARRIED_OUT}"""),
    Rule(LOST, "I13 an archive does not begin where the one before it ends", """
        SELECT x.thread_id, x.generation FROM (
          SELECT thread_id, generation, first_seq, lag(last_seq, 1, 0) OVER w AS before, row_number() OVER w AS number
          FROM memory_agenthistory WHERE thread_id = ANY(%(threads)s) AND status = 'done'
          WINDOW w AS (PARTITION BY thread_id ORDER BY generation)) x
        WHERE x.first_seq <> x.before + 1 OR x.generation <> x.number - 1"""),
    Rule(LOST, "I13 the live session does not begin where the last archive ends", """
        SELECT t.id FROM memory_thread t LEFT JOIN memory_agenthistory a ON a.thread_id = t.id AND a.status = 'done'
        WHERE t.id = ANY(%(threads)s) GROUP BY t.id
        HAVING t.from_seq <> coalesce(max(a.last_seq), 0) + 1 OR t.generation <> count(a.id)"""),
    Rule(LOST, "I13 an archive differs from the rows that it stands for", """
        SELECT a.thread_id, a.generation FROM memory_agenthistory a
        WHERE a.thread_id = ANY(%(threads)s) AND a.status = 'done' AND (
          SELECT jsonb_agg(jsonb_build_array(e->'seq', e->'role', e->'blocks') ORDER BY (e->>'seq')::int)
          FROM jsonb_array_elements(a.entries) e) IS DISTINCT FROM (
          SELECT jsonb_agg(jsonb_build_array(h.seq, h.role, h.blocks) ORDER BY h.seq)
          FROM memory_historyentry h WHERE h.thread_id = a.thread_id AND h.seq BETWEEN a.first_seq AND a.last_seq)"""),
    Rule(HISTORY, "I13 a session was cut within a turn", """
        SELECT thread_id, generation FROM memory_agenthistory
        WHERE thread_id = ANY(%(threads)s) AND status = 'done' AND entries->0->>'role' <> 'user'"""),
]  # fmt: skip
