"""Many runs on one small budget, in workers that die: what the vendor bills, and what the budget says."""

import threading
import time
import zlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random

from agents.budgets.models import Budget, Reservation, Window
from agents.budgets.services import set_budget
from agents.connecting import Given, connect_model
from agents.providers.base import Usage
from agents.providers.pricing import charge, price_of
from agents.services import send_message
from goals.models import Goal
from memory.models import AgentRun, RunStatus
from tests.factories import GoalFactory, UserFactory
from tests.llm_script import Reply, Request
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker

RUNS, WORKERS, LIMIT, MODEL = 20, 4, Decimal("0.50"), "gpt-5"
PRICE = price_of(MODEL, "openai")
AT_WORK = (RunStatus.QUEUED, RunStatus.RUNNING, RunStatus.CANCELLING)
FAST = {"WAYMARK_MAX_RUNNING_PER_USER": "0", "WAYMARK_BUDGET_PATIENCE_SECONDS": "6", "WAYMARK_LOG_LEVEL": "ERROR"}


@dataclass
class Vendor:
    """Bills every call that reaches it, whoever hears the answer: now and then all the output that it may make. It
    counts one conversation always in the same way, as tokenisers do."""

    dice: Random
    bill: Decimal = Decimal(0)
    calls: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, request: Request) -> Reply:
        most = int(request.body.get("max_completion_tokens", 16_000))
        with self.lock:
            output = most if self.dice.random() < 0.1 else self.dice.randint(1, min(most, 1_500))
            usage = (len(request.raw) // _bytes_per_token(request), output)
            assert PRICE
            self.bill += charge(PRICE, Usage(*usage)) or 0
            self.calls += 1
        if request.results < self.dice.randint(1, 3):
            return Reply(calls=[("search_notes", {"query": f"shoes {self.calls}"})], usage=usage, gap=0.1)
        return Reply("Here is what I have found so far.", usage=usage, gap=0.15)


def _bytes_per_token(request: Request) -> int:
    return 2 + zlib.crc32(str(request.messages[0]).encode()) % 3


@dataclass(frozen=True)
class Outcome:
    """`spent`, `reserved`: what the budget says in the end. `billed`: what the vendor wants. Of `runs`, some wait."""

    spent: Decimal
    reserved: Decimal
    billed: Decimal
    calls: int
    kills: int
    most: Decimal
    runs: dict[str, int]


def spend(llm: LLMServer, seed: int, seconds: float = 12) -> Outcome:
    """Send a message to each of RUNS goals, kill workers for so many seconds, and let the rest come to an end."""
    dice = Random(seed)
    vendor = Vendor(Random(seed))
    llm.always(vendor)
    user = UserFactory.create(is_staff=True)
    connect_model(user, "openai", Given(MODEL, llm.url, "key-of-the-test"))
    goals: list[Goal] = [GoalFactory(user=user) for _ in range(RUNS)]
    budget = set_budget(user, Window.TOTAL, LIMIT, None)
    kills, most = 0, Decimal(0)
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(**FAST)) for _ in range(WORKERS)]
        for goal in goals:
            send_message(goal.thread, "What do my notes say about shoes?")
        wait_until(lambda: vendor.calls > 0, 60)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(dice.uniform(0.5, 3))
            dice.choice(workers).kill()
            kills += 1
            workers = [one for one in workers if not one.is_dead()]
            workers += [stack.enter_context(worker(**FAST)) for _ in range(WORKERS - len(workers))]
            most = max(most, _held(budget))
        wait_until(lambda: not AgentRun.objects.for_user(user).filter(status__in=AT_WORK).exists(), 120)
        wait_until(lambda: not Reservation.objects.filter(budget=budget).exists(), 30)
    budget.refresh_from_db()
    statuses = list(AgentRun.objects.for_user(user).values_list("status", flat=True))
    counts = {status: statuses.count(status) for status in sorted(set(statuses))}
    return Outcome(budget.spent, budget.reserved, vendor.bill, vendor.calls, kills, max(most, budget.spent), counts)


def _held(budget: Budget) -> Decimal:
    budget.refresh_from_db()
    return budget.spent + budget.reserved


def problems(outcome: Outcome) -> list[str]:
    """What must never be; empty when all is well."""
    found = {
        "more was spent than allowed": outcome.spent > LIMIT,
        "more was held than allowed": outcome.most > LIMIT,
        "the vendor bills more than allowed": outcome.billed > LIMIT,
        "the vendor bills what no budget has counted": outcome.billed > outcome.spent,
        "something stays reserved": outcome.reserved != 0,
        "nothing was done": outcome.calls == 0,
        "a run ended otherwise": bool(set(outcome.runs) - {RunStatus.SUCCEEDED, RunStatus.WAITING_BUDGET}),
    }
    return [words for words, is_so in found.items() if is_so]
