"""Nothing leads out of a workspace (threat T14, case FIL-01)."""

import ctypes
import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings as hypothesis_settings, strategies as st

from tools.sandbox import beneath
from tools.sandbox.beneath import OutOfReach, open_file, open_folder, parts_of
from tools.sandbox.folder import Folder
from tools.sandbox.listing import Kind

ROUNDS = 1_000
# Of renameat2.
AT_WORKING, EXCHANGE = -100, 2


@pytest.fixture(params=["by the kernel", "part by part"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test is made with openat2, and as on a kernel that lacks it."""
    if request.param == "part by part":
        monkeypatch.setattr(beneath, "has_openat2", lambda: False)
    elif not beneath.has_openat2():
        pytest.skip("this kernel has no openat2")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "secret.txt").write_text("SECRET")
    return outside


@pytest.fixture
def planted(folder: Folder, other: Folder, outside: Path) -> Folder:
    """What a command may have left behind, so that we follow it."""
    files = folder.files
    (files / "sub").mkdir()
    (files / "a.txt").write_text("mine")
    links: dict[str, str | Path] = {
        "l1": outside,
        "l2": outside / "secret.txt",
        "l3": outside / "new.txt",
        "l4": files / "l1",
        "sub/l5": "../a.txt",
        "proc": "/proc/self/root",
        "neighbour": other.files,
    }
    for name, target in links.items():
        (files / name).symlink_to(target)
    os.link(outside / "secret.txt", files / "hard")
    os.mkfifo(files / "pipe")
    os.mknod(files / "socket", 0o600 | stat.S_IFSOCK)
    return folder


def lexical(folder: Folder, other: Folder) -> list[str]:
    return [
        f"../../{other.thread_id}/files/secret.txt",
        f"{folder.files}/a.txt",
        f"{folder.files}/../../{other.thread_id}/files/secret.txt",
        f"%2e%2e%2f{other.thread_id}%2ffiles%2fsecret.txt",
        "../a.txt",
        "sub/../a.txt",
        "..",
        "sub/..",
        "/",
        "/etc/passwd",
        "//etc/passwd",
        "/workspacex/a.txt",
        "/workspace/../etc/passwd",
        "..\\a.txt",
        "\u2024\u2024/a.txt",
        "a.txt\0.png",
        "a\n.txt",
        "\u202etxt.a",
        "x" * 300,
        "/".join(["deep"] * 400),
        "\ud800",
    ]


LINKED = ("l1/secret.txt", "l2", "l3", "l4/secret.txt", "proc/etc/passwd", "neighbour/secret.txt", "sub/l5")
NO_FILES = ("hard", "pipe", "socket", "sub", "l1")


def test_fil_01_no_path_reads_what_is_outside(planted: Folder, other: Folder) -> None:
    for path in (*lexical(planted, other), *LINKED, *NO_FILES):
        with pytest.raises(OutOfReach) as refused:
            os.close(open_file(planted.files, parts_of(path)))
        assert "SECRET" not in str(refused.value)
        assert "out/" not in str(refused.value)


def test_fil_01_the_answer_does_not_tell_whether_there_is_something(planted: Folder, outside: Path) -> None:
    (planted.files / "l6").symlink_to(outside / "nothing.txt")

    def answer(path: str) -> str:
        with pytest.raises(OutOfReach) as refused:
            open_file(planted.files, parts_of(path))
        return str(refused.value)

    assert answer("l2") == answer("l3") == answer("l6")
    assert answer("l1/secret.txt") == answer("l1/nothing.txt")


def test_fil_01_no_write_goes_outside_or_over_what_is_no_file(planted: Folder, outside: Path) -> None:
    before = sorted(outside.iterdir())
    for path in (*LINKED, *NO_FILES, "l1/new.txt", "l4/new.txt", "neighbour/new.txt", "a.txt/new.txt"):
        staged = planted.staged / "staged"
        content = planted.stage(staged, iter([b"changed"]))
        with pytest.raises((OutOfReach, OSError)):
            planted.put(staged, list(parts_of(path)), content.mode)
    assert sorted(outside.iterdir()) == before
    assert (outside / "secret.txt").read_text() == (planted.files / "hard").read_text() == "SECRET"


def test_fil_01_removing_a_link_removes_the_link(planted: Folder, outside: Path) -> None:
    planted.remove(["l2"])
    assert not (planted.files / "l2").is_symlink()
    for path in ("l1/secret.txt", "l4/secret.txt", "sub"):
        with pytest.raises(OutOfReach):
            planted.remove(path.split("/"))
    assert (outside / "secret.txt").read_text() == "SECRET"


def test_fil_01_a_list_and_a_scan_follow_nothing(planted: Folder) -> None:
    kinds = {entry.name: entry.kind for entry in planted.entries()}
    assert kinds["l1"] is kinds["l2"] is kinds["neighbour"] is Kind.LINK
    assert kinds["hard"] is kinds["pipe"] is kinds["socket"] is Kind.OTHER
    scan = planted.scan(1_000)
    assert (set(scan.files), scan.folders) == ({"a.txt"}, {"sub"})
    with pytest.raises(OutOfReach):
        planted.entries(("l1",))


def test_fil_01_a_folder_that_is_exchanged_for_a_link_meanwhile(folder: Folder, outside: Path) -> None:
    """Whatever moment it is exchanged at, a read finds the own file or nothing, and a write never goes outside."""
    (folder.files / "d").mkdir()
    (folder.files / "d" / "secret.txt").write_text("mine")
    (folder.files / "link").symlink_to(outside)
    over, libc = threading.Event(), ctypes.CDLL(None)
    names = [os.fsencode(folder.files / name) for name in ("d", "link")]

    def exchange() -> None:
        while not over.is_set():
            libc.renameat2(AT_WORKING, names[0], AT_WORKING, names[1], EXCHANGE)

    thread = threading.Thread(target=exchange)
    thread.start()
    read, written = set(), 0
    try:
        for _ in range(ROUNDS):
            try:
                with open(open_file(folder.files, ("d", "secret.txt"))) as file:
                    read.add(file.read())
            except OutOfReach:
                pass
            staged = folder.staged / "staged"
            content = folder.stage(staged, iter([b"mine"]))
            try:
                folder.put(staged, ["d", "new.txt"], content.mode)
                written += 1
            except OutOfReach:
                pass
    finally:
        over.set()
        thread.join()
    assert read == {"mine"}
    assert written
    assert [each.name for each in outside.iterdir()] == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "SECRET"


def test_fil_01_devices_are_no_files(folder: Folder) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root makes devices")
    os.mknod(folder.files / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    with pytest.raises(OutOfReach):
        open_file(folder.files, ("zero",))
    assert folder.scan(10).odd == 1


@given(st.lists(st.sampled_from(["..", ".", "", "a", "l", "d", "/", "~", "workspace", "\\", "%2e"]), max_size=8))
@hypothesis_settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], database=None)
def test_fil_01_random_paths_stay_inside(folder: Folder, outside: Path, parts: list[str]) -> None:
    if not (folder.files / "l").is_symlink():
        (folder.files / "l").symlink_to(outside)
        (folder.files / "d").mkdir()
        (folder.files / "a").write_text("mine")
        (folder.files / "d" / "a").write_text("mine")
    try:
        descriptor = open_file(folder.files, parts_of("/".join(parts)))
    except OutOfReach:
        return
    with open(descriptor) as file:
        assert file.read() == "mine"


def test_the_place_where_commands_see_it_is_understood(folder: Folder) -> None:
    (folder.files / "a.txt").write_text("mine")
    assert parts_of("/workspace/a.txt") == parts_of("./a.txt") == parts_of(" a.txt ") == ("a.txt",)
    assert parts_of("/workspace") == parts_of("") == parts_of(".") == ()
    os.close(open_folder(folder.files, parts_of("/workspace")))
