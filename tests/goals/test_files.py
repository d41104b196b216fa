"""The files of a goal's agent, in the browser and over the API (mission D5, cases FIL-01 and UND-02)."""

import asyncio
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.cache import cache
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from agents.engine import presence
from agents.live.stream import redis_client
from goals import file_serving
from goals.models import Goal
from goals.services import delete_goal
from memory.ids import new_id
from tests.factories import GoalFactory
from tests.processes import wait_until
from tools import files, filing
from tools.file_models import Writer
from tools.models import AgentAction
from tools.sandbox.folder import Folder
from tools.sandbox.listing import Scan

pytestmark = pytest.mark.django_db(transaction=True)

OUTSIDE = ("../kept", "..%2f..%2fx", "%2e%2e/x", "/etc/passwd", "l1/secret.txt", "l2", "hard", "pipe", "d")


@pytest.fixture(autouse=True)
def workspaces(tmp_path: Path, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACES = tmp_path / "workspaces"


@pytest.fixture
def folder(goal: Goal) -> Folder:
    folder = Folder(goal.thread_id)
    folder.make()
    return folder


@pytest.fixture
def browser(user: User, client: Client) -> Client:
    client.force_login(user)
    return client


@pytest.fixture
def outside(folder: Folder, tmp_path: Path) -> Iterator[Path]:
    """A file outside of the workspace, and all ways to it that a command may have planted; it stays as it is."""
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "secret.txt").write_text("SECRET")
    (folder.files / "d").mkdir()
    (folder.files / "l1").symlink_to(outside)
    (folder.files / "l2").symlink_to(outside / "secret.txt")
    os.link(outside / "secret.txt", folder.files / "hard")
    os.mkfifo(folder.files / "pipe")
    yield outside
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret.txt": "SECRET"}


def upload(name: str = "log.csv", content: bytes = b"1,2\n") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content)


def content_of(answer: Any) -> bytes:
    """Of a file, which is sent piece by piece."""

    async def pieces() -> list[bytes]:
        return [piece async for piece in answer.streaming_content]

    return b"".join(async_to_sync(pieces)())


def open_files() -> list[str]:
    found = []
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(os.readlink(each))
    return found


def page(goal: Goal) -> str:
    return f"/goals/{goal.pk}/files/"


def api_of(goal: Goal) -> str:
    return f"/api/v1/goals/{goal.pk}/files"


def test_the_panel_shows_what_lies_there_whoever_put_it_there(browser: Client, goal: Goal, folder: Folder) -> None:
    """As the page of all files does: a command that was killed with its worker has said nothing of what it did."""
    browser.post(page(goal), {"files": [upload("mine.txt")]})
    (folder.files / "d").mkdir()
    (folder.files / "d" / "left.txt").write_text("by a command")
    panel = browser.get(f"/goals/{goal.pk}/").text.partition('id="panel-files"')[2].partition("</details>")[0]
    assert re.findall(r'dir="auto">([^<]*)</span>', panel) == ["d/left.txt", "mine.txt"]
    assert re.search(r"Files <span[^>]*>2</span>", panel)


def test_the_panel_looks_at_everything_only_now_and_then(
    browser: Client, goal: Goal, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks, scan = [], Folder.scan

    def counted(self: Folder, most: int) -> Scan:
        looks.append(most)
        return scan(self, most)

    monkeypatch.setattr(Folder, "scan", counted)

    def shown() -> str:
        return browser.get(f"/goals/{goal.pk}/").text.partition('id="panel-files"')[2].partition("</details>")[0]

    assert [shown().count('dir="auto"') for _look in range(3)] == [0, 0, 0]
    assert len(looks) == 1
    browser.post(page(goal), {"files": [upload("mine.txt")]})
    assert "mine.txt" in shown()
    looks.clear()
    (folder.files / "left.txt").write_text("by a command")
    assert "left.txt" not in shown()
    assert not looks
    cache.clear()
    assert "left.txt" in shown()
    browser.post(f"{page(goal)}delete/", {"path": "mine.txt"})
    assert "mine.txt" not in shown()


def test_the_page_lists_saves_takes_in_and_deletes_without_script(browser: Client, goal: Goal, folder: Folder) -> None:
    assert "No files yet" in browser.get(page(goal)).text
    answer = browser.post(page(goal), {"files": [upload(), upload("<b>&.py", b"print()")]}, follow=True)
    assert "“log.csv” is in the workspace." in answer.text
    assert "&lt;b&gt;&amp;.py" in answer.text
    assert {path.name for path in folder.files.iterdir()} == {"log.csv", "<b>&.py"}

    assert "4\N{NO-BREAK SPACE}bytes, " in answer.text
    assert "on the disk, counted in whole blocks." in answer.text
    saved = browser.get(f"{page(goal)}saved/log.csv")
    assert content_of(saved) == b"1,2\n"
    answer = browser.post(f"{page(goal)}delete/", {"path": "log.csv"}, follow=True)
    assert answer.redirect_chain, "a reload deletes nothing again"
    assert "“log.csv” is deleted." in answer.text
    action = AgentAction.objects.get(tool="delete_file")
    assert f"/actions/{action.pk}/undo" in answer.text
    back = browser.post(f"/actions/{action.pk}/undo", {"next": page(goal)}, follow=True)
    assert "log.csv" in back.text
    assert (folder.files / "log.csv").read_bytes() == b"1,2\n"


def test_the_goal_shows_its_newest_files_beside_the_conversation(browser: Client, goal: Goal) -> None:
    for number in range(8):
        files.write(goal.thread_id, f"f{number}.txt", iter([b"x"]), files.Hand(Writer.AGENT))
    shown = browser.get(f"/goals/{goal.pk}/").text
    assert "f7.txt" in shown
    assert "f1.txt" not in shown
    assert f'href="{page(goal)}"' in shown


def test_what_people_do_to_files_is_on_record_with_the_way_back(browser: Client, goal: Goal, folder: Folder) -> None:
    browser.post(page(goal), {"files": upload(content=b"v1")})
    browser.post(page(goal), {"files": upload(content=b"v2")})
    activity = browser.get("/activity/").text
    assert activity.count("wrote a file") == 2
    action = AgentAction.objects.order_by("-created_at").first()
    assert action
    browser.post(f"/actions/{action.pk}/undo", {"next": page(goal)})
    assert (folder.files / "log.csv").read_bytes() == b"v1"


@pytest.mark.parametrize("name", ["page.html", "x.svg", "a.js", "picture.png"])
def test_nothing_is_ever_shown_only_saved(name: str, browser: Client, api: Client, goal: Goal, folder: Folder) -> None:
    (folder.files / name).write_text("<script>alert(1)</script>")
    for answer in (browser.get(f"{page(goal)}saved/{name}"), api.get(f"{api_of(goal)}/{name}")):
        assert answer["Content-Type"] == "application/octet-stream"
        assert answer["Content-Disposition"] == f'attachment; filename="{name}"'
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"
        assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("moment", ["opened", "read"])
def test_who_leaves_while_a_file_is_opened_or_read_leaves_nothing_open(
    moment: str, browser: Client, goal: Goal, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread cannot be stopped: it opens the file nevertheless, or reads from it."""
    (folder.files / "log.csv").write_bytes(b"1,2\n")
    answer: Any = browser.get(f"{page(goal)}saved/log.csv")
    is_at_it, goes_on, read = threading.Event(), threading.Event(), list[Any]()

    def slow(call: Callable[..., Any]) -> Callable[..., Any]:
        def slowly(*arguments: Any) -> Any:
            is_at_it.set()
            assert goes_on.wait(20)
            result = call(*arguments)
            read.append(result)
            return result

        return slowly

    async def leaves() -> None:
        sending = asyncio.ensure_future(anext(aiter(answer.streaming_content)))
        assert await asyncio.to_thread(is_at_it.wait, 20)
        sending.cancel()
        asyncio.get_running_loop().call_later(0.1, goes_on.set)
        with pytest.raises(asyncio.CancelledError):
            await sending

    if moment == "opened":
        monkeypatch.setattr(file_serving, "opened", slow(filing.opened))
    else:
        monkeypatch.setattr(file_serving, "os", SimpleNamespace(read=slow(os.read), close=os.close))
    asyncio.run(leaves())
    wait_until(lambda: len(read) == 1)
    assert moment == "opened" or read == [b"1,2\n"]
    assert not [each for each in open_files() if each.endswith("log.csv")]


def test_over_the_api(api: Client, goal: Goal, folder: Folder) -> None:
    made = api.post(api_of(goal), {"file": upload(), "path": "data/2026/log.csv"})
    assert (made.status_code, made.json()["tool"], made.json()["summary"]) == (201, "write_file", "data/2026/log.csv")
    (entry,) = api.get(api_of(goal)).json()["results"]
    assert (entry["path"], entry["size"]) == ("data/2026/log.csv", 4)
    assert content_of(api.get(f"{api_of(goal)}/data/2026/log.csv")) == b"1,2\n"
    gone = api.delete(f"{api_of(goal)}/data/2026/log.csv")
    assert (gone.status_code, gone.json()["tool"]) == (200, "delete_file")
    assert list(folder.files.iterdir()) == []
    assert api.get(f"{api_of(goal)}/data/2026/log.csv").status_code == 404
    path = f"/api/v1/actions/{gone.json()['id']}/undo"
    assert api.post(path, {}, content_type="application/json").status_code == 200
    assert (folder.files / "data" / "2026" / "log.csv").read_bytes() == b"1,2\n"


@pytest.fixture
def many(folder: Folder) -> list[str]:
    """As many as there may be, some with names that mean something in an address; by path."""
    names = [f"{number % 50}/{number:04}.txt" for number in range(4_940)] + ["a&b=c.txt", "d#e?f.txt", "ä+ü%41.txt"]
    for number in range(50):
        (folder.files / str(number)).mkdir()
    for name in names:
        (folder.files / name).touch()
    return sorted(names)


def test_a_page_lists_so_many_files_and_leads_to_the_next(
    browser: Client, goal: Goal, folder: Folder, many: list[str]
) -> None:
    seen: list[str] = []
    address = page(goal)
    while address:
        shown = browser.get(address).text
        here = [unescape(path) for path in re.findall(r'download dir="auto">([^<]+)</a>', shown)]
        assert 0 < len(here) <= 100
        assert len(shown) < 150_000
        seen += here
        found = re.search(r'href="([^"]*\?after=[^"]*)">More files', shown)
        assert bool(found) is (f"{len(many) - len(seen):,} more".replace(",", "") in shown)
        address = unescape(found[1]) if found else ""
    assert seen == many


def test_a_page_stays_where_it_is_when_a_file_is_deleted(
    browser: Client, goal: Goal, folder: Folder, many: list[str]
) -> None:
    first, second = many[100], many[101]
    deleted = browser.post(f"{page(goal)}delete/", {"path": first, "after": many[99]}, follow=True).text
    assert re.findall(r'download dir="auto">([^<]+)</a>', deleted)[0] == second
    assert "From the first file" in deleted
    assert "No more files." in browser.get(page(goal), {"after": many[-1]}).text


def test_the_api_lists_files_page_by_page(api: Client, goal: Goal, folder: Folder, many: list[str]) -> None:
    seen: list[str] = []
    address = api_of(goal)
    while address:
        answer = api.get(address).json()
        assert 0 < len(answer["results"]) <= 50
        seen += [entry["path"] for entry in answer["results"]]
        address = answer["next"]
        if len(seen) == 50:  # what comes and goes meanwhile neither repeats nor hides others
            (folder.files / seen[0]).unlink()
            (folder.files / "0" / "0").touch()
    assert seen == many
    longer = api.get(api_of(goal), {"limit": 200}).json()
    assert (len(longer["results"]), longer["next"]) == (200, f"{api_of(goal)}?limit=200&cursor={quote(many[199], '')}")
    assert api.get(api_of(goal), {"limit": 201}).status_code == 400


@pytest.mark.parametrize("path", OUTSIDE)
def test_fil_01_no_address_leads_out(
    path: str, browser: Client, api: Client, goal: Goal, folder: Folder, outside: Path
) -> None:
    for answer in (browser.get(f"{page(goal)}saved/{path}"), api.get(f"{api_of(goal)}/{path}")):
        assert answer.status_code == 404, path
        assert b"SECRET" not in answer.content
    if path not in ("l2", "hard", "pipe"):  # what these names are is removed, not where they lead
        assert api.delete(f"{api_of(goal)}/{path}").status_code in (400, 404)
    put: Any = api.post(api_of(goal), {"file": upload(), "path": path})
    assert put.status_code == (201 if path == "..%2f..%2fx" or path == "%2e%2e/x" else 400)


def test_fil_01_the_name_of_an_upload_leads_nowhere(browser: Client, goal: Goal, folder: Folder) -> None:
    for name in ("../../evil", "..\\evil", "/etc/evil", "a/../../evil"):
        browser.post(page(goal), {"files": upload(name)})
    assert {path.name for path in folder.files.iterdir()} == {"evil"}


def test_deleting_a_link_removes_the_link(api: Client, goal: Goal, folder: Folder, outside: Path) -> None:
    assert api.delete(f"{api_of(goal)}/l2").status_code == 200
    assert not (folder.files / "l2").is_symlink()


def test_uploads_have_limits(browser: Client, api: Client, goal: Goal, folder: Folder, settings: Settings) -> None:
    settings.WAYMARK_WORKSPACE_UPLOAD = 1_000
    settings.WAYMARK_WORKSPACE_BYTES = 10_000
    large = api.post(api_of(goal), {"file": upload(content=b"x" * 2_000)})
    assert (large.status_code, large.json()["error"]["code"]) == (400, "invalid")
    assert "one may have at most 1000 bytes" in browser.post(page(goal), {"files": upload(content=b"x" * 2_000)}).text
    answers = [api.post(api_of(goal), {"file": upload(f"f{n}", b"x" * 900)}).status_code for n in range(4)]
    assert (answers[0], answers[-1]) == (201, 400)
    assert browser.post(page(goal), {}).status_code == 422
    assert list(folder.staged.iterdir()) == []


def test_files_of_others_are_files_of_nobody(browser: Client, api: Client) -> None:
    theirs = GoalFactory()
    files.write(theirs.thread_id, "secret.txt", iter([b"SECRET"]), files.Hand(Writer.USER))
    for goal_id in (theirs.pk, new_id()):
        assert browser.get(f"/goals/{goal_id}/files/").status_code == 404
        assert browser.get(f"/goals/{goal_id}/files/saved/secret.txt").status_code == 404
        assert browser.post(f"/goals/{goal_id}/files/", {"files": upload()}).status_code == 404
        assert browser.post(f"/goals/{goal_id}/files/delete/", {"path": "secret.txt"}).status_code == 404
        assert api.get(f"/api/v1/goals/{goal_id}/files").status_code == 404
    assert [path.name for path in Folder(theirs.thread_id).files.iterdir()] == ["secret.txt"]


def test_files_go_with_their_goal(goal: Goal, folder: Folder) -> None:
    files.write(goal.thread_id, "f.txt", iter([b"x"]), files.Hand(Writer.USER))
    delete_goal(goal)
    assert not folder.home.exists()


def test_the_page_tells_why_commands_are_withheld(browser: Client, goal: Goal) -> None:
    reason = "Commands are withheld: bwrap is not there."
    assert reason not in browser.get(page(goal)).text
    presence.tell_of_commands(reason)
    assert reason in browser.get(page(goal)).text
    redis_client().delete(presence._commands_key())
