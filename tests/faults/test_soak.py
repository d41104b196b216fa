"""F17 for a short while; `bin/test soak --minutes N` for a long one."""

import pytest

from tests.faults import soak
from tests.faults.conftest import Run


@pytest.mark.trials
def test_F17_whatever_breaks_in_whatever_order_the_invariants_hold(run: Run) -> None:
    run(soak.soaked, 60)
