"""Connections do not outlive their test."""

from collections.abc import Iterator

import pytest

from tools.mcp import loop, sessions


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    loop.submit(sessions.close_all()).result(10)
