"""The world outside: counts the effects of tools by the ids of their calls, where no rollback reaches.

A tool says in its request how long the answer is to be held back, FOR_EVER until `release`; and whether only at the
first request of that call.
"""

import threading
import time
from collections import Counter
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

import orjson

FOR_EVER = 900.0


@dataclass(frozen=True, slots=True)
class Happening:
    """One effect. `at` is the time of the clock that PostgreSQL reads too."""

    kind: str
    call: str
    run: str
    worker: str
    at: float


class Sink:
    """Serves while it is entered."""

    def __init__(self) -> None:
        self.happened: list[Happening] = []
        self._release = threading.Event()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:
                    return  # the worker died before it had said it all
                about = orjson.loads(body)
                _, kind, call = self.path.split("/")
                first = not sink.times(kind)[call]
                sink.happened.append(Happening(kind, call, about["run"], about["worker"], time.time()))
                if first or not about["once"]:
                    sink.hold(about["hold"])
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Silent."""

            def handle(self) -> None:
                """A worker that is killed leaves half a conversation behind."""
                try:
                    super().handle()
                except OSError:
                    return

        self._server = _Server(("127.0.0.1", 0), Handler)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True, name="sink").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def hold(self, seconds: float) -> None:
        if seconds < FOR_EVER:
            time.sleep(seconds)
        else:
            self._release.wait(seconds)

    def release(self) -> None:
        """Answer all that were to be held for ever."""
        before, self._release = self._release, threading.Event()
        before.set()

    def times(self, kind: str) -> Counter[str]:
        """How often each call of a kind took effect."""
        return Counter(each.call for each in list(self.happened) if each.kind == kind)

    def has_more_than(self, count: int) -> bool:
        return len(self.happened) > count


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256
