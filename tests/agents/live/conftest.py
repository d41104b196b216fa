"""What the tests of live events share. Each starts with an empty Redis and leaves no hub behind."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from agents.live import hub as hubs
from agents.live.stream import flush, redis_client


@pytest.fixture(autouse=True)
def empty_redis() -> Iterator[None]:
    redis_client().flushdb()
    yield
    assert flush(5)


@pytest_asyncio.fixture
async def closed_hub() -> AsyncIterator[None]:
    """For tests with an event loop: their hub ends with them."""
    yield
    found = hubs._hubs.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.close()
