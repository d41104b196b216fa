"""F18: with one safeguard taken out of the engine, the oracle must say so. A suite that cannot fail shows nothing."""

from functools import partial
from random import Random

import pytest

from tests.faults import ends, mutations
from tests.faults.conftest import SEED, Run
from tests.faults.site import Site

pytestmark = pytest.mark.trials


@pytest.mark.parametrize("mutation", mutations.MUTATIONS, ids=[each.mutant for each in mutations.MUTATIONS])
def test_F18_a_missing_safeguard_is_noticed(run: Run, mutation: mutations.Mutation) -> None:
    run(partial(mutations.noticed, mutation), 1)


def test_F18_the_fence_alone_keeps_a_frozen_worker_from_writing(site: Site) -> None:
    tally = ends.worker_frozen_before_its_last_write(site, 1, Random(SEED), mutant="no_self_fence")
    assert not any("does not hold it" in each.where for each in tally.found), tally.found
