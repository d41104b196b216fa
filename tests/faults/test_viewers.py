"""F16 in few repetitions."""

from tests.faults import pages, viewers
from tests.faults.conftest import Run


def test_F16_a_device_that_loses_its_connection_misses_nothing_and_sees_nothing_twice(run: Run) -> None:
    run(viewers.connection_lost_and_resumed, 2)


def test_F16_REN_03_a_page_that_loses_its_connection_misses_nothing_and_is_told_nothing_twice(run: Run) -> None:
    run(pages.connection_lost_and_resumed, 2)
