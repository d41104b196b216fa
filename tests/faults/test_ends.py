"""F7: a message at each barrier of a run's end."""

from functools import partial

import pytest

from tests.faults import ends
from tests.faults.conftest import Run


@pytest.mark.parametrize("barrier", ends.BARRIERS)
def test_F7_CON_01_a_message_at_a_barrier_of_the_end_is_answered(run: Run, barrier: ends.Barrier) -> None:
    run(partial(ends.message_at, barrier), 1)
