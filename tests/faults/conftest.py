"""One site for all tests of a process, and a seed that is printed with every failure."""

import os
from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.faults.site import Site
from tests.faults.trial import Tally

SEED = int(os.environ.get("FAULTS_SEED", "1"))

type Run = Callable[..., Tally]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/faults/" in item.path.as_posix():
            item.add_marker(pytest.mark.faults)


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    with Site() as site:
        yield site


@pytest.fixture
def run(site: Site) -> Iterator[Run]:
    """Try a scenario a few times; nothing may have been lost, repeated, left hanging or written wrongly."""

    def run(scenario: Callable[[Site, int, Random], Tally], rounds: int) -> Tally:
        tally = scenario(site, rounds, Random(SEED))
        assert not tally.found, f"seed {SEED}: {tally.found}"
        return tally

    yield run
    site.heal()
