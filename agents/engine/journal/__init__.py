"""The durable points of a run (docs/reliability.md), each one statement and so one commit.

Every statement of a run starts with the fence: the UPDATE of its own row under its lease token. When that finds no
row, nothing else in the statement happens and LeaseLost says: stop now. Rows of several tables are written from JSON
arrays, so that each point is one prepared statement. Lock order: thread, run, action, approval.

A statement sees the rows as they were when it began, however long it then waits for a lock; only the locked row itself
is read anew. So what depends on what the lock's holder did is in the locked row, or read by a statement of its own.
"""

from agents.engine.journal.accept import accept, wake
from agents.engine.journal.approvals import decision, start, wait_for_approval, waits_for_approval
from agents.engine.journal.claim import claim, take_messages
from agents.engine.journal.end import Postponed, final, final_landed, give_back, hand_over, retry_now, stop, wait
from agents.engine.journal.keep import lost_runs, renew
from agents.engine.journal.repair import abandon, release, stale_runs_of, stale_runs_of_others, stuck_runs
from agents.engine.journal.rows import (
    AcceptedRow,
    ActionOutcome,
    ActionStart,
    ApprovalRequest,
    Cell,
    Final,
    Lease,
    LeaseLost,
    NextCall,
    Progress,
    Pulse,
    Settled,
    WaitAnswer,
)
from agents.engine.journal.steps import call_again, outcome, outcome_landed, quarantine, reply
from agents.engine.journal.surely import surely

__all__ = [
    "AcceptedRow",
    "ActionOutcome",
    "ActionStart",
    "ApprovalRequest",
    "Cell",
    "Final",
    "Lease",
    "LeaseLost",
    "NextCall",
    "Postponed",
    "Progress",
    "Pulse",
    "Settled",
    "WaitAnswer",
    "abandon",
    "accept",
    "call_again",
    "claim",
    "decision",
    "final",
    "final_landed",
    "give_back",
    "hand_over",
    "lost_runs",
    "outcome",
    "outcome_landed",
    "quarantine",
    "release",
    "renew",
    "reply",
    "retry_now",
    "stale_runs_of",
    "stale_runs_of_others",
    "start",
    "stop",
    "stuck_runs",
    "surely",
    "take_messages",
    "wait",
    "wait_for_approval",
    "waits_for_approval",
    "wake",
]
