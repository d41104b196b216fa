"""An MCP server of the handshake era, over HTTP on this machine, that can be told to fail in many ways."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

PROTOCOL = "2025-06-18"


LATER: dict[str, Any] = {}
"""The answer of a call that never comes: its stream ends, and is to be gone on with."""


class Dies(Exception):
    """The connection ends without an answer."""


class Fails(Exception):
    """With an error of the protocol: its code and data."""


def tool(name: str, description: str = "", schema: Any = None) -> dict[str, Any]:
    given = schema if schema is not None else {"type": "object", "properties": {"x": {"type": "string"}}}
    return {"name": name, "description": description, "inputSchema": given}


def says(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


@dataclass
class FakeMcp:
    """tools: what it lists. acts: what a tool does with its arguments, by name. called: what was called, in order.
    key: when it is set, who does not send it is refused. methods: everything that was asked of it.
    lets_in: whether it knows an Authorization, by the method that is asked. challenge: what it says to whom it does not
    let in. documents: what stands at other paths. heard: every Authorization that came. connections: that are open.
    next_cursor: where a listing goes on, for ever. offers_streams: it lets everybody listen, says nothing, and wants to
    be asked again at once. listened: the Last-Event-ID of who did."""

    address: str
    tools: list[Any] = field(default_factory=list)
    acts: dict[str, Callable[[dict[str, Any]], Any]] = field(default_factory=dict)
    called: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)
    key: str = ""
    before_list: Callable[[], None] = lambda: None
    lets_in: Callable[[str, str], bool] = lambda method, authorization: True
    challenge: str = ""
    documents: dict[str, Any] = field(default_factory=dict)
    heard: list[str] = field(default_factory=list)
    connections: set[Any] = field(default_factory=set)
    next_cursor: str = ""
    offers_streams: bool = False
    listened: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        return urlsplit(self.address).netloc

    # What is said instead to whom asks for `at`: an error, or a body as it is.
    at: str = ""
    fails_with: dict[str, Any] | None = None
    raw: str = ""

    def restart(self) -> None:
        """Forget everybody."""
        self.sessions.clear()

    def result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            info = {"name": "fake", "version": "1"}
            return {"protocolVersion": PROTOCOL, "capabilities": {"tools": {}}, "serverInfo": info}
        if method == "tools/list":
            self.before_list()
            return {"tools": self.tools, **({"nextCursor": self.next_cursor} if self.next_cursor else {})}
        if method == "tools/call":
            name, arguments = params["name"], params.get("arguments") or {}
            self.called.append((name, arguments))
            result: dict[str, Any] = self.acts.get(name, lambda _: says("done"))(arguments)
            return result
        raise KeyError(method)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeMcp

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass

    def setup(self) -> None:
        self.fake.connections.add(self)
        super().setup()

    def finish(self) -> None:
        self.fake.connections.discard(self)
        super().finish()

    def do_GET(self) -> None:
        if self.path == "/mcp" and self.fake.offers_streams:
            return self._end_at_once()
        found = self.fake.documents.get(self.path)
        return self._answer(200 if found is not None else 404 if "/.well-known/" in self.path else 405, found)

    def do_DELETE(self) -> None:
        self._answer(200, None)

    def do_POST(self) -> None:
        said = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        method, number = said.get("method", ""), said.get("id")
        self.fake.methods.append(method)
        if self._turns_away(method) or (number is not None and self._has_forgotten()):
            return None
        if number is None:
            return self._answer(202, None)
        if method == self.fake.at and (self.fake.raw or self.fake.fails_with):
            return self._answer_oddly(number)
        try:
            result = self.fake.result(method, said.get("params") or {})
        except KeyError:
            error = {"code": -32601, "message": f"no {method}"}
            return self._answer(200, {"jsonrpc": "2.0", "id": number, "error": error})
        except Fails as fails:
            code, data = fails.args
            error = {"code": code, "message": "It failed.", "data": data}
            return self._answer(200, {"jsonrpc": "2.0", "id": number, "error": error})
        except Dies:
            self.close_connection = True
            return self.connection.close()
        if result is LATER:
            return self._end_at_once()
        if isinstance(result, Iterator):
            return self._stream(number, said["params"].get("_meta", {}).get("progressToken"), result)
        headers = {}
        if method == "initialize":
            headers["Mcp-Session-Id"] = uuid4().hex
            self.fake.sessions.add(headers["Mcp-Session-Id"])
        return self._answer(200, {"jsonrpc": "2.0", "id": number, "result": result}, headers)

    def _answer_oddly(self, number: Any) -> None:
        if self.fake.raw:
            return self._answer_raw(200, self.fake.raw.replace('"%id"', json.dumps(number)).encode(), {})
        return self._answer(200, {"jsonrpc": "2.0", "id": number, "error": self.fake.fails_with})

    def _turns_away(self, method: str) -> bool:
        authorization = self.headers.get("Authorization", "")
        self.fake.heard.append(authorization)
        if (not self.fake.key or authorization == self.fake.key) and self.fake.lets_in(method, authorization):
            return False
        status = 403 if "insufficient_scope" in self.fake.challenge else 401
        self._answer(status, None, {"WWW-Authenticate": self.fake.challenge} if self.fake.challenge else {})
        return True

    def _has_forgotten(self) -> bool:
        session = self.headers.get("Mcp-Session-Id")
        if not session or session in self.fake.sessions:
            return False
        self._answer(404, None)
        return True

    def _stream(self, number: Any, token: Any, parts: Iterator[dict[str, Any]]) -> None:
        """Progress as it comes, and the result, which has a content, at the end."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for part in parts:
            news = {"method": "notifications/progress", "params": {"progressToken": token, **part}}
            body = {"id": number, "result": part} if "content" in part else news
            self.wfile.write(b"event: message\ndata: " + json.dumps({"jsonrpc": "2.0", **body}).encode() + b"\n\n")
            self.wfile.flush()
        self.close_connection = True

    def _end_at_once(self) -> None:
        """A stream with an event that says nothing but where to go on, and at once."""
        if self.command == "GET":
            self.fake.listened.append(self.headers.get("Last-Event-ID", ""))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"id: 1\nretry: 0\ndata:\n\n")
        self.close_connection = True

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self._answer_raw(status, json.dumps(body).encode() if body is not None else b"", headers or {})

    def _answer_raw(self, status: int, packed: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that was closed on purpose is no news."""


@contextmanager
def fake_mcp() -> Iterator[FakeMcp]:
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    fake = FakeMcp(f"http://127.0.0.1:{server.server_port}/mcp")
    handler.fake = fake  # type: ignore[attr-defined]
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()


def slowly(seconds: float, text: str = "at last") -> Callable[[dict[str, Any]], dict[str, Any]]:
    def act(arguments: dict[str, Any]) -> dict[str, Any]:
        time.sleep(seconds)
        return says(text)

    return act
