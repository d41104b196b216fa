"""F13 in one repetition, without the servers that hang, which take long; tests/agents/engine/test_retries.py has every
header and class."""

from tests.faults import refusals
from tests.faults.conftest import Run


def test_F13_PRV_06_each_class_is_asked_so_often_and_never_early(run: Run) -> None:
    run(refusals.refused, 1)
