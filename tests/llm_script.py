"""What scripts for the scripted model server are written with, and the script of the bench."""

from tests.llm_anthropic import A
from tests.llm_chat import DONE, D, F, U, violation
from tests.llm_steps import Drop, Hang, Json, Raw, Reply, Request, Scripted, Status, Step, event

__all__ = [
    "DONE",
    "A",
    "D",
    "Drop",
    "F",
    "Hang",
    "Json",
    "Raw",
    "Reply",
    "Request",
    "Scripted",
    "Status",
    "Step",
    "U",
    "bench_step",
    "event",
    "violation",
]

BENCH_CALLS = (
    ("search_notes", {"query": "half marathon"}),
    ("create_note", {"title": "Half marathon in May", "body": "Shoes, a plan of twelve weeks, a place to sleep."}),
)
BENCH_TEXT = " ".join(f"word{number}" for number in range(60))


def bench_step(request: Request) -> Step:
    if request.results < len(BENCH_CALLS):
        return Reply(calls=[BENCH_CALLS[request.results]], chunk_size=40)
    return Reply(BENCH_TEXT)
