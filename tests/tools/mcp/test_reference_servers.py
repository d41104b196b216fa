"""The protocol's reference servers as they are installed, as programs in the sandbox, from the first look on (cases
MCP-01, MCP-03, threat T12).

Those that are Python packages: time, git and fetch. The others, `everything` and `filesystem`, come from npm, which our
tests install nothing from; the SDK's own example servers are not in its wheel.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from agents.providers.base import Endpoint, ModelRequest
from agents.providers.catalog import connect
from memory.messages import user as from_user
from tests.agents.providers.conftest import KEY, KINDS, SERVERS
from tests.factories import UserFactory, bearer
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.tools.mcp.test_definitions import LEGAL, parts
from tools.base import ToolContext, ToolError
from tools.cancel import CancelToken
from tools.mcp import offered
from tools.mcp.models import McpServer
from tools.mcp.program_list import programs_from
from tools.mcp.schema import KEPT
from tools.mcp.tool import Anything, McpTool
from tools.sandbox import box

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(bool(box.missing_program()), reason=f"{box.missing_program()} is not there"),
]

BIN = Path(sys.executable).parent

type Listed = Callable[..., McpServer]


@pytest.fixture
def staff() -> User:
    user: User = UserFactory(is_staff=True)
    return user


@pytest.fixture
def listed(staff: User, settings: Settings) -> Listed:
    """What the operator lists and a member of staff names, looks at and agrees to, over the API."""

    def listed(name: str, *words: str, **more: Any) -> McpServer:
        command = [str(BIN / f"mcp-server-{name}"), *words]
        settings.WAYMARK_MCP_COMMANDS = programs_from(json.dumps([{"command": command, **more}]))

        def ask(path: str, body: object) -> dict[str, Any]:
            answer = Client().post(f"/api/v1/{path}", body, content_type="application/json", headers=bearer(staff))
            assert answer.status_code < 300, answer.content
            told: dict[str, Any] = answer.json()
            return told

        made = ask("mcp-servers", {"name": name, "argv": command})
        found = ask(f"mcp-servers/{made['id']}/check", {})
        assert found["error"] == "", found["said"]
        assert {each["state"] for each in found["tools"]} == {"new"}
        ask(f"mcp-servers/{made['id']}/accept", {"digests": [each["digest"] for each in found["tools"]]})
        return McpServer.objects.get(pk=made["id"])

    return listed


def called(server: McpServer, name: str, **given: Any) -> str:
    found = offered.find(server.user_id, f"{server.name}__{name}")
    assert isinstance(found, McpTool)
    nobody: Any = None
    context = ToolContext(server.user_id, nobody, nobody, nobody, CancelToken())
    return found.run(Anything.model_validate(given), context).observation


def processes(mark: str) -> list[psutil.Process]:
    """Ours that run, of which the command line says so, without the walls around them."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # a zombie counts as one
            words = each.cmdline()
            if words and "python" in words[0] and mark in " ".join(words):
                found.append(each)
    return found


def test_time_tells_and_converts_it(listed: Listed) -> None:
    server = listed("time", "--local-timezone", "Europe/Berlin")
    tokyo = json.loads(
        called(server, "convert_time", source_timezone="Asia/Tokyo", time="16:30", target_timezone="Asia/Kolkata")
    )
    assert (tokyo["time_difference"], tokyo["target"]["datetime"][11:16]) == ("-3.5h", "13:00")
    with pytest.raises(ToolError, match="Invalid timezone"):
        called(server, "get_current_time", timezone="Nowhere/Land")


def test_mcp_01_a_program_that_is_killed_is_started_again_by_the_next_call(listed: Listed) -> None:
    server = listed("time", "--local-timezone", "UTC")
    (first,) = processes("mcp-server-time")
    first.send_signal(signal.SIGKILL)
    first.wait(10)
    assert '"timezone"' in called(server, "get_current_time", timezone="UTC")
    (second,) = processes("mcp-server-time")
    assert second.pid != first.pid


@pytest.fixture
def repository(tmp_path: Path, settings: Settings) -> Path:
    """With one commit, of whoever programs run as."""
    home = tmp_path / "repository"
    home.mkdir()
    (home / "plan.txt").write_text("first\n")
    for command in (
        "init --quiet --initial-branch=main",
        "config user.name Test",
        "config user.email test@example.org",
        "add plan.txt",
        "commit --quiet -m begin",
    ):
        subprocess.run(["git", "-C", str(home), *command.split()], check=True)
    (home / "plan.txt").write_text("first\nsecond\n")
    if box.is_root():
        owner = settings.WAYMARK_SANDBOX_UID
        for place in (home, *home.rglob("*")):
            os.chown(place, owner, owner)
    return home


def test_git_reads_a_repository_that_it_may_read_and_changes_none(listed: Listed, repository: Path) -> None:
    server = listed("git", "--repository", str(repository), read=[str(repository)])
    given = {"repo_path": str(repository)}
    assert "modified:   plan.txt" in called(server, "git_status", **given)
    assert "begin" in called(server, "git_log", **given)
    assert "+second" in called(server, "git_diff_unstaged", **given)
    with pytest.raises(ToolError, match=r"(?i)read-only|index\.lock"):
        called(server, "git_add", **given, files=["plan.txt"])


def test_git_commits_to_a_repository_that_it_may_change(listed: Listed, repository: Path) -> None:
    server = listed("git", "--repository", str(repository), write=[str(repository)])
    given = {"repo_path": str(repository)}
    called(server, "git_add", **given, files=["plan.txt"])
    assert "committed" in called(server, "git_commit", **given, message="go on")
    log = ["git", "-c", f"safe.directory={repository}", "-C", str(repository), "log", "--format=%s"]
    assert subprocess.run(log, capture_output=True, text=True, check=True).stdout.split("\n")[:2] == ["go on", "begin"]


def test_git_without_its_repository_says_so_on_the_page(staff: User, settings: Settings, repository: Path) -> None:
    command = [str(BIN / "mcp-server-git"), "--repository", str(repository)]
    settings.WAYMARK_MCP_COMMANDS = programs_from(json.dumps([command]))
    device, headers = Client(), bearer(staff)
    body = {"name": "git", "argv": command}
    made = device.post("/api/v1/mcp-servers", body, content_type="application/json", headers=headers).json()
    check = f"/api/v1/mcp-servers/{made['id']}/check"
    assert (
        "could not be reached"
        in device.post(check, {}, content_type="application/json", headers=headers).json()["error"]
    )
    found = device.get(f"/api/v1/mcp-servers/{made['id']}", headers=headers).json()
    assert f"{repository} does not exist" in found["said"]


@pytest.fixture
def site() -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"Shoes\n\nTwo of them are here.\n"
            self.send_response(200)
            self.send_header("Content-Type", "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("network", [True, False])
def test_fetch_reaches_what_there_is_only_with_the_network(listed: Listed, site: str, network: bool) -> None:
    server = listed("fetch", "--allow-private-ips", "--ignore-robots-txt", network=network)
    if network:
        assert "Two of them are here." in called(server, "fetch", url=site)
    else:
        with pytest.raises(ToolError, match="Failed to fetch"):
            called(server, "fetch", url=site)


def test_mcp_03_what_they_describe_fits_every_vendor(listed: Listed, repository: Path) -> None:
    servers = [
        listed("time", "--local-timezone", "UTC"),
        listed("git", read=[str(repository)]),
        listed("fetch"),
    ]
    specs = [tool.spec() for tool in offered.known_to(servers[0].user_id).values()]
    assert {spec.name for spec in specs} >= {"time__convert_time", "git__git_commit", "fetch__fetch"}
    assert all(LEGAL.fullmatch(spec.name) for spec in specs)
    for part in (part for spec in specs for part in parts(spec.schema)):
        assert isinstance(part.get("type"), str) != ("anyOf" in part)
        assert part.keys() <= {*KEPT, "properties", "items", "anyOf"}
    for kind in KINDS:
        with SERVERS.get(kind, LLMServer)() as vendor:
            vendor.script([Reply(text="Hello.")])
            provider = connect(Endpoint(kind, vendor.url, KEY, anywhere=True))
            request = ModelRequest(model="m", system="Be brief.", messages=[from_user("hi")], tools=specs)
            assert [*provider.stream(request, CancelToken())]
            provider.close()
            assert (len(vendor.requests[-1].body["tools"]), vendor.violations) == (len(specs), [])
