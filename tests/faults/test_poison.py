"""F14 in few examples."""

from tests.faults import poison
from tests.faults.conftest import Run


def test_F14_STO_01_STO_02_no_content_bricks_a_conversation(run: Run) -> None:
    run(poison.poisoned, 10)
