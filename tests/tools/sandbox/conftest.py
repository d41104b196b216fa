"""A workspace on the disk, without an agent."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from pytest_django import Settings

from memory.ids import new_id
from tools.sandbox.folder import Folder


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Iterator[Folder]:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"
    folder = Folder(new_id())
    folder.make()
    yield folder
    folder.forget()


@pytest.fixture
def other(folder: Folder) -> Folder:
    """A neighbour's workspace, whose name begins like the first one's."""
    other = Folder(UUID(int=folder.thread_id.int ^ 1))
    other.make()
    (other.files / "secret.txt").write_text("SECRET")
    return other
