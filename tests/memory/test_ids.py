"""Identifiers come in the order in which they are made: pages of lists are put in order by them."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from memory import ids

MOMENT = 1_795_983_111_832_000_000
"""Nanoseconds since 1970: a whole millisecond."""


def test_those_of_one_millisecond_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(range(MOMENT, MOMENT + 1_000_000, 1_000))
    monkeypatch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: next(ticks)))
    made = [ids.new_id() for _ in range(1_000)]
    assert made == sorted(made)
    assert {each.version for each in made} == {7}
    assert {each.variant for each in made} == {"specified in RFC 4122"}
    at = datetime.fromtimestamp(MOMENT / 1e9, UTC)
    assert ids.least_id(at) <= made[0]
    assert made[-1] < ids.least_id(at + timedelta(milliseconds=1))


def test_those_of_one_moment_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ids, "time", SimpleNamespace(time_ns=lambda: MOMENT))
    assert len({ids.new_id() for _ in range(1_000)}) == 1_000
