"""F2, F4, F8, F9 in few repetitions: servers and links that go away."""

from functools import partial

import pytest

from tests.faults import links, outages
from tests.faults.conftest import Run


def test_F8_a_flushed_valkey_loses_nothing(run: Run) -> None:
    run(outages.valkey_flushed, 1)


def test_F8_a_killed_valkey_loses_nothing_and_messages_are_accepted_without_it(run: Run) -> None:
    run(outages.valkey_killed, 1)


def test_F8_what_happened_can_be_read_without_valkey(run: Run) -> None:
    run(outages.viewers_without_valkey, 1)


def test_F8_a_worker_that_starts_without_valkey_waits_for_it(run: Run) -> None:
    run(links.valkey_away_at_the_start, 1)


def test_F8_a_lost_link_to_valkey_loses_nothing(run: Run) -> None:
    run(links.valkey_link_lost, 2)


@pytest.mark.parametrize("how", ["fast", "immediate"])
def test_F9_a_restarted_postgres_loses_and_repeats_nothing(run: Run, how: str) -> None:
    run(partial(outages.postgres_restarted, how), 1)


def test_F9_STO_04_a_connection_lost_during_a_long_model_call_costs_nothing(run: Run) -> None:
    run(outages.sessions_ended, 1)


@pytest.mark.parametrize("side", ["before", "after"])
def test_F2_a_link_cut_at_a_commit_loses_and_repeats_nothing(run: Run, side: str) -> None:
    run(partial(links.commit_cut, side), 2)


def test_F2_a_reset_link_to_the_model_loses_nothing(run: Run) -> None:
    run(links.model_link_reset, 2)


def test_F4_behind_a_black_hole_a_worker_stops_before_another_takes_over(run: Run) -> None:
    run(links.postgres_black_hole, 1)
