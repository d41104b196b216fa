"""T16: what one account does, however long it takes, does not stop the others. Against the web server as it runs."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.request import Request, urlopen

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client

from agents import shares
from agents.connecting import Given, connect_model
from agents.providers import probe
from agents.providers.base import Endpoint, ProviderError, Trouble
from tests.factories import UserFactory, bearer
from tests.processes import wait_until, web
from tests.security.asking import CSRF, ask

pytestmark = [pytest.mark.programs, pytest.mark.django_db(transaction=True)]


@pytest.fixture(scope="module")
def address(django_db_setup: None) -> Iterator[str]:
    with web() as found:
        yield found


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A model server that takes every call and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        yield listener


@pytest.fixture
def dripping() -> Iterator[str]:
    """One that sends a byte of its answer, or another informational head, as long as anybody listens."""
    ended = threading.Event()

    def drip(line: socket.socket) -> None:
        with line:
            line.recv(65536)
            try:
                while not ended.wait(0.05):
                    line.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")
            except OSError:
                return

    def take(listener: socket.socket) -> None:
        while not ended.is_set():
            try:
                threading.Thread(target=drip, args=(listener.accept()[0],), daemon=True).start()
            except OSError:
                return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=take, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)


def cookie(user: User) -> str:
    client = Client()
    client.force_login(user)
    return client.cookies["sessionid"].value


def test_tests_of_a_silent_model_hold_up_nobody(address: str, silent: socket.socket) -> None:
    user = UserFactory.create(staff=True)
    url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
    connection = connect_model(user, "compatible", Given("m", url))
    session, other = cookie(user), cookie(UserFactory.create())
    place = f"/settings/models/{connection.pk}/test/"
    with ThreadPoolExecutor(30) as pool:
        asked = [pool.submit(ask, address, "POST", place, session, 60) for _ in range(30)]
        wait_until(lambda: sum(each.done() for each in asked) == 29)
        assert ask(address, "GET", "/healthz") == 200
        assert ask(address, "GET", "/settings/appearance/", other) == 200
        silent.close()
        statuses = [each.result() for each in asked]
    assert statuses.count(429) == 29
    assert Session.objects.exists()


def test_the_verdict_comes_when_it_is_there(address: str) -> None:
    user = UserFactory.create()
    connection = connect_model(user, "demo", Given("demo"))
    cookies = f"csrftoken={CSRF}; sessionid={cookie(user)}"
    headers = {"Cookie": cookies, "X-CSRFToken": CSRF}
    request = Request(f"{address}/settings/models/{connection.pk}/test/", b"", headers)
    for _ in range(2):
        with urlopen(request, timeout=20) as answer:
            assert "The demonstration is always there." in answer.read().decode()


def test_a_list_of_models_has_a_deadline_however_lively_its_server(
    dripping: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "PATIENCE_SECONDS", 0.5)
    with pytest.raises(ProviderError) as caught:
        probe.list_models(Endpoint("compatible", f"{dripping}/v1", anywhere=True))
    assert caught.value.trouble is Trouble.TIMEOUT
    assert not probe.test_connection(Endpoint("compatible", f"{dripping}/v1", anywhere=True), "m").ok


def test_whoever_drips_at_the_port_of_ollama_is_not_waited_for(dripping: str) -> None:
    asked = ThreadPoolExecutor(1).submit(probe.find_ollama, dripping)
    assert asked.result(20) is None


def test_the_requests_of_one_user_leave_threads_for_others() -> None:
    user, other = UserFactory.create(), UserFactory.create()
    for _ in range(settings.WAYMARK_REQUESTS_PER_USER):
        assert shares.requests.begin(user.pk)
    try:
        client = Client()
        client.force_login(user)
        assert client.get("/").status_code == 429
        assert client.get("/api/v1/runs", headers=bearer(user)).status_code == 429
        assert client.get("/api/v1/runs", headers=bearer(other)).status_code == 200
    finally:
        for _ in range(settings.WAYMARK_REQUESTS_PER_USER):
            shares.requests.end(user.pk)
    assert client.get("/welcome/").status_code == 200
    assert client.get("/api/v1/runs", headers=bearer(user)).status_code == 200
    assert not shares.requests._taken
