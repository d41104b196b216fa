"""F13 in one repetition; tests/agents/engine/test_retries.py has every header and class."""

from tests.faults import refusals
from tests.faults.conftest import Run


def test_F13_PRV_06_each_class_is_asked_so_often_and_never_early(run: Run) -> None:
    run(refusals.refused, 1)


def test_F13_a_server_that_hangs_is_asked_so_often_and_never_early(run: Run) -> None:
    run(refusals.hung, 1)
