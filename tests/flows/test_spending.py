"""I17: 20 runs in 4 worker processes that are killed at random never spend more than their budget (mission C5).

`SPENDING_SEEDS=100 bin/test …` tries as many seeds; each prints a line.
"""

import os

import pytest

from tests.flows.spending import problems, spend
from tests.llm_server import LLMServer

pytestmark = [pytest.mark.programs, pytest.mark.trials]

SEEDS = range(int(os.environ.get("SPENDING_SEEDS", "1")))


@pytest.mark.faults
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seed", SEEDS)
def test_runs_that_die_at_random_never_overspend(llm: LLMServer, seed: int) -> None:
    outcome = spend(llm, seed)
    print(seed, outcome)
    assert not problems(outcome), outcome
