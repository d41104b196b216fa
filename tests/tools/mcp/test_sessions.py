"""Connections to MCP servers: kept, opened again, checked, given up."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import uvicorn
from django.contrib.auth.models import User
from mcp.server.mcpserver import MCPServer
from pytest_django import Settings

from memory.ids import new_id
from memory.pool import orm
from tests.factories import UserFactory
from tests.mcp_server import LATER, Dies, Fails, FakeMcp, fake_mcp, says, slowly, tool
from tools.base import ToolContext, ToolError
from tools.cancel import Cancelled, CancelToken
from tools.mcp import loop, offered, services, sessions, streams
from tools.mcp.bearer import NOT_LET_IN
from tools.mcp.definitions import read
from tools.mcp.models import McpServer, McpSignIn
from tools.mcp.tool import Anything, McpTool, ServerBrokeDown, ServerWentAway, StoppedMidway
from tools.mcp.transports import target_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fake(settings: Settings) -> Iterator[FakeMcp]:
    with fake_mcp() as served:
        settings.WAYMARK_FETCH_PRIVATE = [served.place]
        served.tools = [tool("look"), tool("post")]
        yield served


@pytest.fixture
def real(settings: Settings) -> Iterator[str]:
    """A server made with the SDK itself, of its newest protocol."""
    made = MCPServer("real")

    @made.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    server = uvicorn.Server(uvicorn.Config(made.streamable_http_app(), port=0, log_level="error"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.02)
    port = server.servers[0].sockets[0].getsockname()[1]
    settings.WAYMARK_FETCH_PRIVATE = [f"127.0.0.1:{port}"]
    yield f"http://127.0.0.1:{port}/mcp"
    server.should_exit = True


def connected(url: str, *reads: str, user: Any = None) -> McpServer:
    server = services.check(services.add(user or UserFactory(), services.Named("shop", url)))
    services.accept(server, [each.digest for each in read(server.seen)], reads)
    return McpServer.objects.get(pk=server.pk)


def called(server: McpServer, name: str, cancel: CancelToken | None = None, **given: Any) -> str:
    found = offered.find(server.user_id, f"shop__{name}")
    assert isinstance(found, McpTool)
    nobody: Any = None
    context = ToolContext(server.user_id, nobody, nobody, nobody, cancel or CancelToken())
    return found.run(Anything.model_validate(given), context).observation


def three_times(server: McpServer, name: str) -> None:
    """At the same time."""

    def once() -> None:
        with orm():
            called(server, name)

    threads = [threading.Thread(target=once) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_a_server_of_the_sdk_is_used_with_its_own_protocol(real: str) -> None:
    server = connected(real)
    assert [(each.name, each.description) for each in read(server.accepted)] == [("add", "Add two numbers.")]
    assert called(server, "add", a=40, b=2) == "42"
    with pytest.raises(ToolError, match="valid"):
        called(server, "add", a="x", b=2)


def test_a_connection_is_kept_and_shared(fake: FakeMcp) -> None:
    server = connected(fake.address)
    three_times(server, "look")
    assert len(fake.called) == 3
    assert fake.methods.count("initialize") == 1


def test_mcp_01_one_connection_is_opened_after_a_restart_however_many_ask(fake: FakeMcp) -> None:
    server = connected(fake.address)
    fake.restart()
    three_times(server, "look")
    assert len(fake.called) == 3
    assert fake.methods.count("initialize") == 2


def test_mcp_01_a_server_that_dies_midway_says_so_at_once(fake: FakeMcp) -> None:
    server = connected(fake.address, "look")

    def die(given: dict[str, Any]) -> Any:
        raise Dies

    fake.acts |= {"post": die, "look": die}
    with pytest.raises(ServerWentAway):
        called(server, "post")
    with pytest.raises(ToolError):
        called(server, "look")
    assert [name for name, _ in fake.called] == ["post", "look"]
    fake.acts.clear()
    assert called(server, "post") == "done"


def test_mcp_01_a_server_that_is_gone_is_left_alone_for_a_while(fake: FakeMcp, settings: Settings) -> None:
    server = connected(fake.address)

    def die() -> None:
        raise Dies

    fake.before_list = die
    for _ in range(3):
        with pytest.raises(ToolError, match=r"Nothing was done\. The server could not be reached"):
            called(server, "look")
    asked = len(fake.methods)
    with pytest.raises(ToolError, match="failed 3 times in a row"):
        called(server, "look")
    assert len(fake.methods) == asked
    assert services.check(server).error.startswith("The server failed 3 times")


def test_a_server_that_does_not_let_us_in_says_so_each_time_and_is_used_as_soon_as_it_does(fake: FakeMcp) -> None:
    server = connected(fake.address)
    fake.key = "another"
    for _ in range(4):
        with pytest.raises(ToolError, match=r"Nothing was done\. The server lets nobody in without"):
            called(server, "look")
    assert "credentials" in services.check(server).error
    fake.key = ""
    assert called(server, "look") == "done"


def test_a_call_that_is_stopped_ends_at_once_and_its_outcome_is_unknown(fake: FakeMcp) -> None:
    server = connected(fake.address, "look")
    fake.acts |= {"post": slowly(3), "look": slowly(3)}
    for name, raised in (("post", StoppedMidway), ("look", Cancelled)):
        cancel = CancelToken()
        threading.Timer(0.3, cancel.cancel, ("stopped",)).start()
        with pytest.raises(raised):
            called(server, name, cancel)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:{port}/mcp", "Only the ports"),
        ("http://127.0.0.1/mcp", "private network"),
        ("http://localhost/mcp", "private network"),
        ("http://[::1]/mcp", "private network"),
    ],
)
def test_servers_inside_are_not_reached(fake: FakeMcp, settings: Settings, url: str, why: str) -> None:
    settings.WAYMARK_FETCH_PRIVATE = []
    url = url.format(port=fake.place.rpartition(":")[2])
    server = services.check(services.add(UserFactory(), services.Named("shop", url)))
    assert why in server.error
    assert fake.methods == []


@pytest.mark.parametrize("url", ["ftp://example.org/", "http://me:secret@example.org/", "nonsense", "http:///x"])
def test_addresses_that_are_none_are_not_taken(url: str) -> None:
    with pytest.raises(services.NotTaken):
        services.add(UserFactory(), services.Named("shop", url))


def test_the_address_is_looked_up_once_and_what_was_checked_is_connected_to(
    fake: FakeMcp, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is public when it is checked and private when it is connected to."""
    settings.WAYMARK_FETCH_PRIVATE = []
    answers = iter(["93.184.216.34", "127.0.0.1"])

    def look_up(*_: Any, **__: Any) -> Any:
        return [(2, 1, 6, "", (next(answers), 80))]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    server = services.check(services.add(UserFactory(), services.Named("shop", "http://rebound.example/mcp")))
    assert "private network" in server.error


def test_answers_are_read_up_to_a_length(fake: FakeMcp, settings: Settings) -> None:
    server = connected(fake.address)
    settings.WAYMARK_MCP_BYTES = 10_000
    fake.acts["look"] = lambda _: says("x" * 20_000)
    with pytest.raises(ServerWentAway):
        called(server, "look")


def test_credentials_are_sealed_and_go_with_every_request(fake: FakeMcp) -> None:
    fake.key = "Bearer canary"
    named = services.Named("shop", fake.address, {"Authorization": "Bearer canary"})
    server = services.check(services.add(UserFactory(), named))
    assert server.error == ""
    assert "canary" not in str(McpServer.objects.values().get())


def test_what_was_not_agreed_to_or_is_switched_off_is_not_called(fake: FakeMcp) -> None:
    server = connected(fake.address)
    tools = {name: offered.find(server.user_id, f"shop__{name}") for name in ("look", "post")}
    services.accept(server, [each.digest for each in read(server.seen) if each.name == "look"])
    nobody: Any = None
    context = ToolContext(server.user_id, nobody, nobody, nobody, CancelToken())
    stranger = ToolContext(UserFactory().pk, nobody, nobody, nobody, CancelToken())
    assert tools["post"] is not None
    assert tools["look"] is not None
    with pytest.raises(ToolError, match="not agreed"):
        tools["post"].run(Anything(), context)
    with pytest.raises(ToolError, match="switched this server off"):
        tools["look"].run(Anything(), stranger)
    services.switch(McpServer.objects.get(pk=server.pk), on=False)
    with pytest.raises(ToolError, match="switched this server off"):
        tools["look"].run(Anything(), context)
    assert offered.offered_to(server.user_id) == {}
    assert fake.called == []


def test_nobody_agrees_to_what_they_have_not_seen(fake: FakeMcp) -> None:
    server = services.check(services.add(UserFactory(), services.Named("shop", fake.address)))
    shown = [each.digest for each in read(server.seen)]
    fake.tools = [tool("look", "Another.")]
    services.check(server)
    with pytest.raises(services.NotTaken):
        services.accept(server, shown)


def becomes(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + 10
    while time.monotonic() < until and not true():
        time.sleep(0.05)
    return true()


def test_a_run_that_is_stopped_while_a_connection_is_opened_leaves_none(fake: FakeMcp) -> None:
    server = connected(fake.address)
    loop.submit(sessions.close_all()).result(10)
    goes_on, cancel = threading.Event(), CancelToken()

    def stop() -> None:
        cancel.cancel("stopped")
        goes_on.wait(10)

    fake.before_list = stop
    with pytest.raises(Cancelled):
        called(server, "look", cancel)
    goes_on.set()
    assert becomes(lambda: not fake.connections)


def test_a_connection_that_is_opened_while_its_server_is_removed_is_closed(fake: FakeMcp) -> None:
    server = connected(fake.address)
    loop.submit(sessions.close_all()).result(10)
    asked, goes_on = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        goes_on.wait(10)

    fake.before_list = wait
    with ThreadPoolExecutor(1) as threads:
        listing = threads.submit(sessions.tools_of, target_of(server), CancelToken())
        assert asked.wait(10)
        services.remove(server)
        goes_on.set()
        with pytest.raises(sessions.Unreachable, match="meanwhile"):
            listing.result(10)
    assert becomes(lambda: not fake.connections)


@pytest.mark.parametrize("how", ["idle", "off", "removed", "shut out", "another sign-in"])
def test_what_was_taken_away_or_is_not_used_is_closed_in_every_process(
    fake: FakeMcp, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The rows change as another process changes them: nobody tells this one."""
    monkeypatch.setattr(sessions, "SWEEP_SECONDS", 0.05)
    server = connected(fake.address)
    assert fake.connections
    row = McpServer.objects.filter(pk=server.pk)
    if how == "idle":
        monkeypatch.setattr(sessions, "IDLE_SECONDS", 0)
    elif how == "off":
        row.update(enabled=False)
    elif how == "removed":
        row.delete()
    elif how == "shut out":
        User.objects.filter(pk=server.user_id).update(is_active=False)
    else:
        found = {"server": {"authorization_endpoint": "https://a.example/"}}
        McpSignIn.objects.create(server=server, found=found, sealed_tokens="x", grant=new_id())
    assert becomes(lambda: not fake.connections)


def test_what_is_in_use_stays_open(fake: FakeMcp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(sessions, "IDLE_SECONDS", 0)
    server = connected(fake.address)
    fake.acts["look"] = slowly(0.5)
    assert called(server, "look") == "at last"


def test_a_call_in_flight_is_not_broken_off_by_a_change(fake: FakeMcp) -> None:
    server = connected(fake.address)
    asked, goes_on = threading.Event(), threading.Event()

    def wait(given: dict[str, Any]) -> dict[str, Any]:
        asked.set()
        goes_on.wait(10)
        return says("done")

    fake.acts["look"] = wait

    def call() -> str:
        with orm():
            return called(server, "look")

    with ThreadPoolExecutor(1) as threads:
        calling = threads.submit(call)
        assert asked.wait(10)
        services.switch(server, on=False)
        loop.submit(asyncio.sleep(0.2)).result(10)
        goes_on.set()
        assert calling.result(10) == "done"
    assert becomes(lambda: not fake.connections)


def test_there_are_only_so_many_connections(fake: FakeMcp, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 2)
    with fake_mcp() as other:
        settings.WAYMARK_FETCH_PRIVATE.append(other.place)
        connected(other.address)
        assert other.connections
        servers = [connected(fake.address) for _ in range(2)]
        assert becomes(lambda: not other.connections)
    assert called(servers[0], "look") == "done"


def test_nobody_listens_to_a_server_outside_of_calls(fake: FakeMcp) -> None:
    fake.offers_streams = True
    server = connected(fake.address)
    loop.submit(asyncio.sleep(1.5)).result(10)
    assert called(server, "look") == "done"
    assert fake.listened == []


def test_the_answer_of_a_call_is_asked_for_again_slowly_and_not_for_ever(
    fake: FakeMcp, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server says that it is to be asked again at once."""
    monkeypatch.setattr(streams, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(streams, "MOST_RESUMED", 5)
    settings.WAYMARK_MCP_SECONDS = 10
    fake.offers_streams = True
    server = connected(fake.address)
    fake.acts["look"] = lambda given: LATER
    with pytest.raises(ServerWentAway):
        called(server, "look")
    assert fake.listened == ["1"] * 5


def test_a_name_that_is_looked_up_slowly_is_said_to_be_that(fake: FakeMcp, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    monkeypatch.setattr("tools.mcp.network.LOOK_UP_SECONDS", 0.1)
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: goes_on.wait(10))
    server = services.check(services.add(UserFactory(), services.Named("shop", "http://slow.example/mcp")))
    goes_on.set()
    assert "slow.example was not found within 0.1 seconds" in server.error


@pytest.mark.parametrize("data", [None, "", "Bearer", ["", ""]])
def test_no_server_can_say_in_our_place_that_nothing_was_done(fake: FakeMcp, data: Any) -> None:
    server = connected(fake.address)

    def fail(given: dict[str, Any]) -> Any:
        raise Fails(NOT_LET_IN, data)

    fake.acts["post"] = fail
    with pytest.raises(ServerBrokeDown):
        called(server, "post")


def test_mcp_01_what_goes_wrong_in_runs_stands_on_the_page_of_its_server(fake: FakeMcp) -> None:
    server = connected(fake.address)

    def die(given: dict[str, Any] | None = None) -> Any:
        raise Dies

    def error() -> str:
        server.refresh_from_db()
        return server.error

    fake.acts["post"] = die
    with pytest.raises(ServerWentAway):
        called(server, "post")
    assert error() == "The connection was lost during a call."
    assert called(server, "look") == "done"
    assert error() == ""
    loop.submit(sessions.close_all()).result(10)
    fake.before_list = die
    with pytest.raises(ToolError):
        called(server, "look")
    assert error().startswith("The server could not be reached")
    loop.submit(sessions.close_all()).result(10)
    fake.before_list, fake.key = lambda: None, "another"
    with pytest.raises(ToolError):
        called(server, "look")
    assert error().startswith("The server lets nobody in")


def test_mcp_01_a_server_that_dies_at_each_call_is_left_alone_for_a_while(
    fake: FakeMcp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However well it opens."""
    monkeypatch.setattr(sessions, "FIRST_PAUSE", 60.0)
    server = connected(fake.address)

    def die(given: dict[str, Any]) -> Any:
        fake.restart()
        raise Dies

    fake.acts["post"] = die
    for _ in range(3):
        with pytest.raises(ServerWentAway):
            called(server, "post")
    opened = fake.methods.count("initialize")
    with pytest.raises(ToolError, match=r"Nothing was done\. The server failed 3 times in a row"):
        called(server, "post")
    assert fake.methods.count("initialize") == opened


def test_a_listing_is_read_up_to_a_length_over_all_its_pages(fake: FakeMcp, settings: Settings) -> None:
    settings.WAYMARK_MCP_BYTES = 10_000
    fake.tools, fake.next_cursor = [tool("look", "x" * 4_000)], "more"
    server = services.check(services.add(UserFactory(), services.Named("shop", fake.address)))
    assert "lists more than is read" in server.error
    assert fake.methods.count("tools/list") == 3


def test_a_server_that_was_removed_meanwhile_is_not_switched_or_made_again(fake: FakeMcp) -> None:
    server = services.add(UserFactory(), services.Named("shop", fake.address))
    McpServer.objects.all().delete()
    services.switch(server, on=False)
    services.check(server)
    assert not McpServer.objects.exists()
