"""The durable points of a run (docs/reliability.md), each one statement and so one commit.

Every statement of a run starts with the fence: the UPDATE of its own row under its lease token. When that finds no
row, nothing else in the statement happens and LeaseLost says: stop now. Rows of several tables are written from JSON
arrays, so that each point is one prepared statement. Lock order: thread, then run.
"""

from agents.engine.journal.accept import accept, wake
from agents.engine.journal.claim import claim, take_messages
from agents.engine.journal.end import final, hand_over, stop
from agents.engine.journal.keep import lost_runs, renew
from agents.engine.journal.repair import abandon, release, stale_runs, stuck_runs
from agents.engine.journal.rows import (
    AcceptedRow,
    ActionOutcome,
    ActionStart,
    Cell,
    Final,
    Lease,
    LeaseLost,
    NextCall,
    Pulse,
    Settled,
)
from agents.engine.journal.steps import call_again, outcome, reply

__all__ = [
    "AcceptedRow",
    "ActionOutcome",
    "ActionStart",
    "Cell",
    "Final",
    "Lease",
    "LeaseLost",
    "NextCall",
    "Pulse",
    "Settled",
    "abandon",
    "accept",
    "call_again",
    "claim",
    "final",
    "hand_over",
    "lost_runs",
    "outcome",
    "release",
    "renew",
    "reply",
    "stale_runs",
    "stop",
    "stuck_runs",
    "take_messages",
    "wake",
]
