"""F5 in few repetitions: tools and models that hang."""

from tests.faults import hangs
from tests.faults.conftest import Run


def test_F5_CON_04_b_a_tool_that_hangs_is_left_behind_and_its_run_goes_on(run: Run) -> None:
    tally = run(hangs.tool_hangs, 2)
    assert tally.unknown, "what may have happened is said to be unknown"


def test_F5_a_local_tool_that_hangs_costs_the_lease_and_is_done_once(run: Run) -> None:
    assert run(hangs.local_tool_hangs, 2).recoveries


def test_F5_a_model_that_hangs_is_asked_again(run: Run) -> None:
    run(hangs.model_hangs, 2)
