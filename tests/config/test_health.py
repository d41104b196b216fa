"""/readyz: what stands there. That it answers while a server hangs is in test_up.py."""

from pathlib import Path

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from agents.engine import presence

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, settings: Settings) -> None:
    settings.DATA_DIR = settings.WAYMARK_WORKSPACES = tmp_path
    presence.mark_alive()


def test_all_that_is_needed_is_there(client: Client) -> None:
    answer = client.get("/readyz")
    assert answer.status_code == 200
    told = answer.json()
    assert told.pop("disk_free_bytes") > 0
    assert told == {"database": True, "redis": True, "worker": True, "disk": True}


def test_a_full_disk_is_missing_room(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.disk.free", lambda folder: 4_096)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["disk"] is False
    assert answer.json()["disk_free_bytes"] == 4_096


def test_a_disk_that_cannot_be_seen_is_not_missed(client: Client, settings: Settings) -> None:
    settings.DATA_DIR = settings.WAYMARK_WORKSPACES = Path("/nonexistent")
    answer = client.get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["disk_free_bytes"] is None
