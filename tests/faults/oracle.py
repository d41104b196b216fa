"""Whether anything was lost, done twice, left hanging or written wrongly, once all is quiet: what the database says
(rules.py), what the world outside has seen of it, and the history as a strict vendor would read it."""

import itertools
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

import orjson
import psycopg

from agents.providers.base import ModelRequest
from agents.providers.chat_body import ChatBody
from memory.messages import BLOCKS, Message
from memory.repair import repaired
from tests.faults.rules import HISTORY, LOST, REPEATED, RULES, Violation
from tests.faults.sink import Sink
from tests.llm_script import Request, violation

ONCE = ("mail", "wire", "fax")
OUTSIDE = ("peek", "put", "nap", *ONCE)


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
    times = {kind: sink.times(kind) for kind in OUTSIDE}
    found = [
        Violation(REPEATED, "I6 a call took effect more than once", call)
        for kind in ONCE
        for call, n in times[kind].items()
        if n > 1
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
    """The live session as the model would be sent it, before a strict vendor."""
    sql = """
        SELECT h.thread_id, h.role, h.blocks FROM memory_historyentry h JOIN memory_thread t ON t.id = h.thread_id
        WHERE t.id = ANY(%(threads)s) AND h.seq >= t.from_seq ORDER BY h.thread_id, h.seq"""
    found = []
    for thread, rows in itertools.groupby(database.execute(sql, wanted).fetchall(), key=lambda row: row[0]):
        messages = repaired([Message(role=role, blocks=BLOCKS.validate_python(blocks)) for _, role, blocks in rows])
        body = b"".join(ChatBody("max_tokens").serialise(ModelRequest("m", "", messages), with_usage=False))
        if problem := violation(Request("POST", "", {}, body, orjson.loads(body))):
            found.append(Violation(HISTORY, problem, str(thread)))
    return found


def counted(found: Sequence[Violation]) -> Counter[str]:
    return Counter(each.kind for each in found)
