"""F6, F7 in few repetitions."""

from tests.faults import races
from tests.faults.conftest import Run


def test_F6_eight_workers_and_fifty_bells_make_one_run(run: Run) -> None:
    run(races.workers_race, 2)


def test_F7_CON_02_b_one_client_id_is_one_message_and_one_run(run: Run) -> None:
    run(races.same_message_at_once, 2)


def test_F7_CON_01_a_message_around_the_end_of_a_run_is_answered(run: Run) -> None:
    run(races.message_around_the_end, 40)


def test_F7_messages_at_any_point_of_a_run_are_answered(run: Run) -> None:
    run(races.message_at_every_point, 1)


def test_F7_CON_02_a_two_messages_at_once_are_both_answered(run: Run) -> None:
    run(races.two_messages_at_once, 6)


def test_F7_CON_02_c_a_bell_before_its_row_harms_nobody(run: Run) -> None:
    run(races.bell_before_the_row, 2)
