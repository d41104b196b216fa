"""F18: with one safeguard taken out of the engine, the oracle must say so. A suite that cannot fail shows nothing."""

from random import Random

from tests.faults import ends, links, trial
from tests.faults.conftest import SEED
from tests.faults.site import Site


def test_F18_without_the_fence_a_frozen_worker_is_seen_to_write(site: Site) -> None:
    tally = ends.worker_frozen_before_its_last_write(site, 1, Random(SEED), mutant="no_fence")
    assert any("does not hold it" in each.where for each in tally.found), tally.found


def test_F18_the_fence_alone_keeps_a_frozen_worker_from_writing(site: Site) -> None:
    tally = ends.worker_frozen_before_its_last_write(site, 1, Random(SEED), mutant="no_self_fence")
    assert not any("does not hold it" in each.where for each in tally.found), tally.found


def test_F18_without_the_self_fence_effects_after_the_takeover_are_seen(site: Site) -> None:
    tally = links.postgres_black_hole(site, 1, Random(SEED), mutant="no_self_fence")
    assert any(each.words.startswith("I5") for each in tally.found), tally.found


def test_F18_without_a_recorded_start_effects_without_a_record_are_seen(site: Site) -> None:
    goals = site.goals(1)
    with site.worker(mutant="no_start"):
        site.door.send(goals[0], "jot mail")
        site.quiet(goals)
    found = trial.judged(site, "F18", goals, 1).found
    assert {"an effect without a record", "I9 a call without a record"} <= {each.words for each in found}, found
