"""Folders of agents that are gone: whatever a command has made of them, nothing is left."""

import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_django import Settings
from structlog.testing import capture_logs

from memory.ids import new_id
from tools.sandbox.folder import Folder

WARNING = "files of an agent that is gone cannot be removed"


@pytest.fixture
def place(settings: Settings) -> Iterator[Path]:
    """Where others than root come to, too, because nothing is closed to that."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o755)
    settings.WAYMARK_WORKSPACES = place / "workspaces"
    settings.WAYMARK_WORKSPACES.mkdir()
    yield place
    shutil.rmtree(place)


@pytest.fixture
def closed(place: Path, settings: Settings) -> Folder:
    """A workspace as a command may leave it."""
    folder = Folder(new_id())
    folder.make()
    for mode in (0o500, 0o000, 0o100):
        inner = folder.files / f"closed {mode:o}" / "inner"
        inner.mkdir(parents=True)
        (inner / "file").write_text("x")
        inner.chmod(mode)
        inner.parent.chmod(mode)
    folder.files.chmod(0o500)
    outside = place / "outside"
    outside.mkdir(mode=0o500)
    (folder.files / "closed 500" / "link").symlink_to(outside)
    if os.geteuid() == 0:
        for path in (place, *place.rglob("*")):
            os.chown(path, settings.WAYMARK_SANDBOX_UID, settings.WAYMARK_SANDBOX_UID, follow_symlinks=False)
    return folder


def as_a_worker(settings: Settings, check: Callable[[], bool]) -> bool:
    """Check something as one who is not root."""
    if os.geteuid():
        return check()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(settings.WAYMARK_SANDBOX_UID)
            os.setuid(settings.WAYMARK_SANDBOX_UID)
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_folders_that_a_command_has_closed_do_not_keep_it(closed: Folder, place: Path, settings: Settings) -> None:
    assert as_a_worker(settings, closed.forget)
    assert not closed.home.exists()
    assert (place / "outside").stat().st_mode & 0o777 == 0o500, "a link is not followed"


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1_024, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("few_descriptors")
def test_more_folders_in_each_other_than_may_be_open_do_not_keep_it(place: Path) -> None:
    folder, here = Folder(new_id()), Path.cwd()
    folder.make()
    os.chdir(folder.files)
    try:
        for _ in range(3_000):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(here)
    assert folder.forget()
    assert not folder.home.exists()


def test_what_cannot_be_removed_is_logged_with_its_path(closed: Folder, settings: Settings) -> None:
    def tells() -> bool:
        Path(settings.WAYMARK_WORKSPACES).chmod(0o500)
        with capture_logs() as logs:
            gone = closed.forget()
        (told,) = [each for each in logs if each["event"] == WARNING]
        return not gone and told["path"] == str(closed.home) and "Permission denied" in told["why"]

    assert as_a_worker(settings, tells)
    Path(settings.WAYMARK_WORKSPACES).chmod(0o700)
    assert as_a_worker(settings, closed.forget)


def test_what_is_not_there_is_removed(place: Path) -> None:
    with capture_logs() as logs:
        assert Folder(new_id()).forget()
    assert logs == []
