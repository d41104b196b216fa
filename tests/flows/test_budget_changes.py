"""Budgets that come, go and move to another time zone while workers are at work and die: in the end each says exactly
what is on record (invariant I17)."""

import time
from contextlib import ExitStack
from decimal import Decimal
from random import Random

import pytest
from django.contrib.auth.models import User

from agents.budgets import counting
from agents.budgets.models import Budget, Reservation, Window
from agents.budgets.services import remove_budget, set_budget
from agents.connecting import Given, connect_model
from agents.services import assistant_of, send_message
from goals.models import Goal
from goals.preferences import save_profile
from memory.models import AgentRun
from memory.pool import orm_connection
from tests.factories import GoalFactory, UserFactory
from tests.flows.spending import AT_WORK, FAST, MODEL, Vendor
from tests.llm_server import LLMServer
from tests.processes import wait_until, worker

pytestmark = [pytest.mark.programs, pytest.mark.trials]

GOALS, WORKERS, SECONDS = 10, 2, 12
ENOUGH = Decimal(1_000)
ZONES = ("Etc/UTC", "Europe/Vienna", "America/Havana", "Pacific/Kiritimati")


def change(user: User, goals: list[Goal], dice: Random) -> None:
    """One thing that a person may do. Most of the time there are few budgets, or none."""
    thread = dice.choice((None, goals[0].thread))
    found = Budget.objects.filter(user=user, thread=thread).first()
    if dice.random() < 0.2:
        save_profile(assistant_of(user), "", dice.choice(ZONES))
    elif found is None:
        set_budget(user, dice.choice((Window.DAY, Window.MONTH, Window.TOTAL, Window.RUN)), ENOUGH, None, thread)
    else:
        remove_budget(found)


@pytest.mark.faults
@pytest.mark.django_db(transaction=True)
def test_budgets_that_change_under_workers_that_die_forget_nothing(llm: LLMServer) -> None:
    dice = Random(4)
    llm.always(Vendor(dice))
    user = UserFactory.create(is_staff=True)
    connect_model(user, "openai", Given(MODEL, llm.url, "key-of-the-test"))
    goals: list[Goal] = [GoalFactory(user=user) for _ in range(GOALS)]
    with ExitStack() as stack:
        workers = [stack.enter_context(worker(**FAST)) for _ in range(WORKERS)]
        for goal in goals:
            send_message(goal.thread, "What do my notes say about shoes?")
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            time.sleep(dice.uniform(0, 0.3))
            change(user, goals, dice)
            if dice.random() < 0.03:
                workers.pop(0).kill()
                workers.append(stack.enter_context(worker(**FAST)))
            if dice.random() < 0.2:
                send_message(dice.choice(goals).thread, "And about socks?")
        set_budget(user, Window.TOTAL, ENOUGH, None)
        wait_until(lambda: not AgentRun.objects.for_user(user).filter(status__in=AT_WORK).exists(), 120)
        wait_until(lambda: not AgentRun.objects.filter(metered=True).exists(), 30)
    assert not Reservation.objects.exists()
    for budget in Budget.objects.filter(user=user).exclude(window=Window.RUN):
        said = budget.spent, budget.spent_tokens, budget.reserved, budget.reserved_tokens
        counting.bring_up_to_date(budget, *counting.clock(user.pk, orm_connection()))
        counting.count(budget, budget.begins)
        assert said == (budget.spent, budget.spent_tokens, Decimal(0), 0), budget
    total = Budget.objects.get(window=Window.TOTAL, thread=None)
    assert total.spent == sum(run.charged for run in AgentRun.objects.all())
