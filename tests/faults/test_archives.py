"""F1 at D9 and D10, and F12, in few repetitions."""

from functools import partial

import pytest

from tests.faults import archives
from tests.faults.conftest import Run


@pytest.mark.parametrize("point", archives.POINTS)
def test_F1_CON_03_f_an_archiver_killed_at_a_durable_point_leaves_no_half_archive(run: Run, point: str) -> None:
    run(partial(archives.archiver_killed_at, point), 1)


def test_F12_CON_03_e_many_archivers_and_a_writer_lose_and_repeat_nothing(run: Run) -> None:
    run(archives.archivers_and_writer, 4)
