"""F1, F3, F10, F11 in few repetitions; `bin/test faults --full` makes many."""

from functools import partial

import pytest

from tests.faults import kills
from tests.faults.conftest import Run
from tests.faults.site import LEASE


@pytest.mark.parametrize("point", [*kills.POINTS, *kills.WAITING_POINTS])
def test_F1_a_worker_killed_at_a_durable_point_loses_and_repeats_nothing(run: Run, point: str) -> None:
    tally = run(partial(kills.worker_killed_at, point), 1)
    assert max(tally.recoveries, default=0) < LEASE + 20, "7 s on a machine that has nothing else to do"


@pytest.mark.parametrize("effect", kills.EFFECTS)
def test_F1_CON_04_c_a_worker_killed_in_an_effect_does_not_repeat_it(run: Run, effect: str) -> None:
    unknown = run(partial(kills.worker_killed_in, effect), 1).unknown
    assert bool(unknown) == (effect == "mail"), "what has a key is done again under it"


@pytest.mark.parametrize("point", ["D0.before", "D0.after"])
def test_F1_a_message_is_there_once_whenever_the_web_process_is_killed(run: Run, point: str) -> None:
    run(partial(kills.web_killed_at, point), 1)


def test_F3_a_frozen_worker_writes_nothing_after_the_takeover(run: Run) -> None:
    run(kills.worker_frozen, 2)


def test_F10_a_deploy_ends_no_run(run: Run) -> None:
    run(kills.deployed, 4)


def test_F11_after_a_stop_nothing_starts(run: Run) -> None:
    run(kills.stopped, 2)


def test_F11_a_stop_at_any_point_ends_the_run(run: Run) -> None:
    run(kills.stopped_at, 4)
