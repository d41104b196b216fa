"""HTTP as the client speaks it: what counts as a whole answer, what as which error, and which connection is used."""

import contextlib
import gzip
import itertools
import re
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, Self

import httpx2
import pytest

from agents.providers import exchange, wire

OK = b"HTTP/1.1 200 OK\r\n"
SIZED = OK + b"content-length: 4\r\n\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
WHOLE = SIZED + b"done"


class Peer:
    """Answers one request after the other with the bytes of `answers`, and hangs up after each of `hangs_up`. An answer
    in pieces may be without end: it is over when the client has hung up.

    requests: those that came, as (number of the connection, head).
    """

    def __init__(self, answers: Sequence[bytes | Iterable[bytes]], hangs_up: Sequence[int] = ()) -> None:
        self._answers, self._hangs_up = answers, hangs_up
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self.requests: list[tuple[int, bytes]] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        assert not self._thread.is_alive(), "the client has not hung up"

    def _serve(self) -> None:
        for number in range(10):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as reading:
                while head := _head(reading):
                    length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
                    reading.read(int(length[1]) if length else 0)
                    at = len(self.requests)
                    self.requests.append((number, head))
                    _send(connection, self._answers[at])
                    if at in self._hangs_up:
                        break


def _send(connection: socket.socket, answer: bytes | Iterable[bytes]) -> None:
    with contextlib.suppress(OSError):
        for piece in [answer] if isinstance(answer, bytes) else answer:
            connection.sendall(piece)


def _head(reading: BinaryIO) -> bytes:
    return b"".join(itertools.takewhile(lambda line: line != b"\r\n", reading))


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with wire.http_client(wire.Line(), 5, anywhere=True) as connected:
        yield connected


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        OK + b"content-length: 4\r\n",
        OK + b"x: " + b"y" * 70_000 + b"\r\n\r\n",
        SIZED + b"don",
        CHUNKED + b"4\r\ndo",
        CHUNKED + b"4\r\ndone\r\n",
        CHUNKED + b"4\r\ndone!\r\n0\r\n\r\n",
        CHUNKED + b"four\r\ndone\r\n0\r\n\r\n",
        CHUNKED + b"0" * 70_000,
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(client: httpx2.Client, answer: bytes) -> None:
    with Peer([answer], hangs_up=[0]) as peer, pytest.raises(httpx2.RemoteProtocolError):
        client.post(peer.url, content=b"x")


@pytest.mark.parametrize(
    "answer",
    [
        WHOLE,
        OK + b"\r\ndone",
        CHUNKED + b"4\r\ndone\r\n0\r\n\r\n",
        CHUNKED + b"2;a=b\r\ndo\r\n0002 \r\nne\r\n000;c\r\nX-Sum: 1\r\nY: 2\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n" + WHOLE,
        OK + b"content-encoding: Identity\r\n\r\ndone",
        b"HTTP/1.0 200 OK\r\n\r\ndone",
    ],
)
def test_a_whole_answer_is_understood_in_every_form(client: httpx2.Client, answer: bytes) -> None:
    with Peer([answer], hangs_up=[0]) as peer:
        assert client.post(peer.url, content=b"x").content == b"done"


def test_answers_without_a_body_end_with_their_head(client: httpx2.Client) -> None:
    answers = [b"HTTP/1.1 204 No Content\r\n\r\n", OK + b"content-length: 0\r\n\r\n", WHOLE]
    with Peer(answers) as peer:
        assert [client.post(peer.url).content for _ in answers] == [b"", b"", b"done"]
        client.close()
    assert [number for number, _ in peer.requests] == [0, 0, 0]


def endless(start: bytes, piece: bytes, pause: float = 0) -> Iterator[bytes]:
    yield start
    while True:
        time.sleep(pause)
        yield piece


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100), id="heads_that_say_to_continue"),
        pytest.param((b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100), id="heads_that_inform"),
        pytest.param((OK, b"x: y\r\n" * 100), id="lines_of_a_head"),
        pytest.param((OK, b"y" * 1_000), id="a_line_of_a_head"),
        pytest.param((OK + b"\r\n", b"x" * 1_000), id="a_body"),
        pytest.param((OK + b"content-length: " + b"9" * 40 + b"\r\n\r\n", b"x" * 1_000), id="a_body_with_a_length"),
        pytest.param((CHUNKED, b"1\r\nx\r\n" * 1_000), id="chunks"),
        pytest.param((CHUNKED + b"f" * 15 + b"\r\n", b"x" * 1_000), id="a_chunk"),
        pytest.param((CHUNKED + b"f" * 40 + b"\r\n", b"x" * 1_000), id="a_chunk_of_a_size_that_no_machine_has"),
        pytest.param((CHUNKED + b"4;", b"x" * 1_000), id="a_remark_on_a_chunk"),
        pytest.param((CHUNKED + b"0\r\n", b"x: y\r\n" * 100), id="lines_after_the_last_chunk"),
    ],
)
def test_nothing_that_a_server_sends_is_read_without_end(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch, answer: tuple[bytes, bytes]
) -> None:
    monkeypatch.setattr(exchange, "LONGEST_ANSWER", 1_000_000)
    with Peer([endless(*answer)]) as peer, pytest.raises(httpx2.RemoteProtocolError):
        client.post(peer.url)


@pytest.mark.parametrize("answer", [(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"), (OK + b"\r\n", b"x")])
def test_an_answer_in_drops_takes_no_longer_than_an_answer_may(
    client: httpx2.Client, monkeypatch: pytest.MonkeyPatch, answer: tuple[bytes, bytes]
) -> None:
    monkeypatch.setattr(exchange, "LONGEST_SECONDS", 0.3)
    with Peer([endless(*answer, pause=0.02)]) as peer, pytest.raises(httpx2.ReadTimeout):
        client.post(peer.url)


def test_a_compressed_answer_is_not_asked_for_and_not_unpacked(client: httpx2.Client) -> None:
    bomb = gzip.compress(b"0" * 10_000_000)
    compressed = OK + b"content-encoding: gzip\r\n\r\n" + bomb
    with Peer([compressed]) as peer, pytest.raises(httpx2.DecodingError, match="compressed"):
        client.post(peer.url)
    assert b"accept-encoding: identity" in peer.requests[0][1].lower()


@pytest.mark.parametrize("sent", [b"", CHUNKED + b"4\r\ndo", SIZED])
def test_silence_is_a_time_out(sent: bytes) -> None:
    with (
        wire.http_client(wire.Line(), 0.1, anywhere=True) as client,
        Peer([sent]) as peer,
        pytest.raises(httpx2.ReadTimeout),
    ):
        client.post(peer.url)


def test_a_connection_is_kept_unless_the_server_wants_it_closed(client: httpx2.Client) -> None:
    closing = WHOLE.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")
    with Peer([WHOLE, closing, WHOLE, WHOLE]) as peer:
        assert [client.post(peer.url).text for _ in range(4)] == ["done"] * 4
        client.close()
    assert [number for number, _ in peer.requests] == [0, 0, 1, 1]


def test_what_comes_after_an_answer_is_never_the_next_one(client: httpx2.Client) -> None:
    with Peer([WHOLE + OK + b"content-length: 3\r\n\r\nbad", WHOLE]) as peer:
        assert [client.post(peer.url).text for _ in range(2)] == ["done"] * 2
        client.close()


def test_a_connection_that_the_server_closed_meanwhile_is_not_used(client: httpx2.Client) -> None:
    with Peer([WHOLE, WHOLE], hangs_up=[0]) as peer:
        client.post(peer.url)
        _wait_until_closed(client)
        assert client.post(peer.url).text == "done"
        client.close()
    assert [number for number, _ in peer.requests] == [0, 1], "and nothing was sent twice"


def _wait_until_closed(client: httpx2.Client) -> None:
    transport = client._transport
    assert isinstance(transport, wire.Transport)
    assert transport._kept is not None
    transport._kept[-1].recv(1, socket.MSG_PEEK)


def test_an_old_connection_is_not_used(client: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "KEEP_SECONDS", 0)
    with Peer([WHOLE, WHOLE]) as peer:
        client.post(peer.url)
        client.post(peer.url)
        client.close()
    assert [number for number, _ in peer.requests] == [0, 1]


def test_a_connection_to_somewhere_else_is_not_used(client: httpx2.Client) -> None:
    with Peer([WHOLE]) as peer, Peer([WHOLE]) as other:
        client.post(peer.url)
        client.post(other.url)
        client.close()
    assert [len(peer.requests), len(other.requests)] == [1, 1]


def test_an_answer_that_is_left_in_the_middle_ends_its_connection(client: httpx2.Client) -> None:
    with Peer([SIZED + b"do", WHOLE]) as peer:
        with client.stream("POST", peer.url) as response:
            assert next(response.iter_raw()) == b"do"
        assert client.post(peer.url).text == "done"
        client.close()
    assert [number for number, _ in peer.requests] == [0, 1]


def test_closing_the_client_hangs_up_in_the_middle_of_an_answer(client: httpx2.Client) -> None:
    with Peer([SIZED + b"do"]) as peer:
        response = client.send(client.build_request("POST", peer.url), stream=True)
        client.close()
    assert not response.is_closed
