"""When the windows of budgets begin, and what a budget knows of them when its user moves to another time zone."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone

from agents.budgets import windows
from agents.budgets.models import Budget, Window
from agents.budgets.services import allow_more, current, set_budget
from agents.connecting import Given, connect_model
from agents.services import assistant_of
from goals.models import Goal
from goals.preferences import save_profile
from memory.models import AgentRun, RunStatus
from memory.pool import execute
from tests.llm_script import Reply
from tests.llm_server import LLMServer

type Say = Callable[[str], AgentRun]

MODEL = "gpt-5-mini"  # 0.25 and 2 dollars for a million tokens
DEAR = Decimal("0.0752")  # 300,000 tokens in, 100 out


@pytest.fixture(autouse=True)
def priced(goal: Goal, llm: LLMServer) -> None:
    connect_model(goal.user, "openai", Given(MODEL, llm.url, "key-of-the-test"))


@pytest.mark.parametrize(
    ("zone", "window", "now", "begins"),
    [
        ("America/Havana", "month", datetime(2026, 11, 28, 20, tzinfo=UTC), datetime(2026, 11, 1, 4, tzinfo=UTC)),
        ("America/Havana", "day", datetime(2026, 11, 1, 5, 30, tzinfo=UTC), datetime(2026, 11, 1, 4, tzinfo=UTC)),
        ("Africa/Cairo", "day", datetime(2026, 4, 24, 12, tzinfo=UTC), datetime(2026, 4, 23, 22, tzinfo=UTC)),
        ("America/Santiago", "day", datetime(2026, 9, 6, 15, tzinfo=UTC), datetime(2026, 9, 6, 4, tzinfo=UTC)),
        ("Europe/Vienna", "month", datetime(2026, 11, 28, 20, tzinfo=UTC), datetime(2026, 10, 31, 23, tzinfo=UTC)),
    ],
)
def test_a_window_that_begins_in_a_gap_or_a_fold_is_the_same_one_when_it_is_read_back(
    zone: str, window: str, now: datetime, begins: datetime
) -> None:
    assert windows.began(window, now, ZoneInfo(zone)) == begins


def test_a_budget_holds_where_its_month_begins_in_a_fold(goal: Goal, say: Say, llm: LLMServer) -> None:
    save_profile(assistant_of(goal.user), "", "America/Havana")
    budget = set_budget(goal.user, Window.MONTH, Decimal("0.1"), None)
    begins = windows.began(Window.MONTH, datetime(2026, 11, 28, tzinfo=UTC), ZoneInfo("America/Havana"))
    execute("UPDATE agents_budget SET begins = %(begins)s WHERE begins = %(begins)s", {"begins": begins})
    llm.script([Reply("Hi.", usage=(300_000, 100)) for _ in range(3)])
    assert [say("Hi").status for _ in range(3)][-1] == RunStatus.WAITING_BUDGET
    spent = Budget.objects.get(pk=budget.pk).spent
    assert spent == sum(run.cost for run in AgentRun.objects.all())


@pytest.mark.parametrize("window", [Window.DAY, Window.MONTH])
def test_a_new_time_zone_does_not_forget_what_was_spent(goal: Goal, say: Say, llm: LLMServer, window: Window) -> None:
    budget = set_budget(goal.user, window, Decimal("0.1"), None)
    llm.script([Reply("Hi.", usage=(300_000, 100)) for _ in range(2)])
    say("Hi")
    local = timezone.now().astimezone(UTC)
    zone = "Pacific/Kiritimati" if local.hour < 9 else "Etc/GMT-1" if local.hour < 22 else "Etc/GMT+5"
    save_profile(assistant_of(goal.user), "", zone)
    (shown,) = current([Budget.objects.get(pk=budget.pk)], goal.user)
    assert shown.spent == DEAR
    say("Hi")
    row = Budget.objects.get(pk=budget.pk)
    assert (row.spent, row.counted_in) == (DEAR * 2, zone)


def test_what_was_spent_before_the_new_zones_day_is_not_in_it(goal: Goal, say: Say, llm: LLMServer) -> None:
    budget = set_budget(goal.user, Window.DAY, Decimal("0.1"), None)
    llm.script([Reply("Hi.", usage=(300_000, 100))])
    say("Hi")
    execute("UPDATE agents_modelcall SET created_at = created_at - interval '30 hours'", {})
    save_profile(assistant_of(goal.user), "", "Europe/Vienna")
    (shown,) = current([Budget.objects.get(pk=budget.pk)], goal.user)
    assert shown.spent == 0


def test_what_is_allowed_in_addition_is_for_the_window_that_is_now(goal: Goal) -> None:
    budget = set_budget(goal.user, Window.DAY, Decimal("0.0001"), None)
    old = timezone.now() - timedelta(days=2)
    Budget.objects.update(begins=old, spent=Decimal("0.5"), extra=Decimal(3))
    allow_more(budget)
    row = Budget.objects.get(pk=budget.pk)
    assert (row.extra, row.spent) == (Decimal(1), Decimal(0))
    (shown,) = current([row], goal.user)
    assert shown.extra == Decimal(1)


def test_no_budget_grows_beyond_what_anybody_means(goal: Goal) -> None:
    budget = set_budget(goal.user, Window.MONTH, Decimal(1), None)
    for _ in range(12):
        allow_more(budget, Decimal(10_000_000))
    assert Budget.objects.get(pk=budget.pk).extra == Decimal(10_000_000)
