"""F1 at D4 and F11 in few repetitions: people who decide."""

from functools import partial

import pytest

from tests.faults import people
from tests.faults.conftest import Run


@pytest.mark.parametrize("point", people.POINTS)
def test_F1_a_worker_killed_around_an_approval_carries_it_out_once(run: Run, point: str) -> None:
    run(partial(people.worker_killed_at, point), 1)


@pytest.mark.parametrize("point", ["decision.before", "decision.after"])
def test_F1_CON_05_f_a_decision_counts_once_whenever_the_web_process_is_killed(run: Run, point: str) -> None:
    run(partial(people.web_killed_at, point), 1)


def test_F11_CON_05_a_one_call_approved_by_many_is_carried_out_once(run: Run) -> None:
    run(people.approved_at_once, 2)


def test_F11_CON_05_b_of_several_decisions_at_once_one_counts(run: Run) -> None:
    run(people.decided_at_once, 4)


def test_F7_CON_05_c_a_message_as_a_run_begins_to_wait_wakes_it(run: Run) -> None:
    run(people.message_as_a_run_waits, 3)
