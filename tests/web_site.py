"""A web of pages on this machine, and the engines that search it, which refuse what the real ones would refuse."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import orjson

KEY = "key-of-brave"

type Answer = tuple[int, str, bytes]


@dataclass
class Site:
    """`pages`: what stands at a path, as text or bytes, or with status and type. found: what the engines find, as
    (title, address, day, snippet). asked: paths with their queries, in order. queries: what the engines were asked."""

    address: str
    pages: dict[str, str | bytes | Answer] = field(default_factory=dict)
    found: Sequence[tuple[str, str, str | None, str]] = ()
    asked: list[str] = field(default_factory=list)
    queries: list[dict[str, str]] = field(default_factory=list)
    allows_json: bool = True

    @property
    def place(self) -> str:
        return urlsplit(self.address).netloc

    def answer(self, path: str, headers: Any) -> Answer:
        self.asked.append(path)
        parts = urlsplit(path)
        if parts.path == "/search":
            return self._searxng(parts.query)
        if parts.path == "/res/v1/web/search":
            return self._brave(parts.query, headers)
        page = self.pages.get(path, (404, "text/html", b"<p>no such page"))
        if isinstance(page, tuple):
            return page
        return (200, "text/html; charset=utf-8", page.encode() if isinstance(page, str) else page)

    def _searxng(self, query: str) -> Answer:
        given = dict(parse_qsl(query, strict_parsing=True))
        if given.get("format") == "json" and not self.allows_json:
            return 403, "text/html", b"<h1>Forbidden</h1>"
        if given.get("format") != "json":
            return 200, "text/html", b"<html><body>a page for people</body></html>"
        known = {"q", "format", "time_range"}
        if not given.get("q") or given.keys() - known or given.get("time_range", "day") not in ("day", "month", "year"):
            return 400, "text/html", b"Bad Request"
        self.queries.append(given)
        results = [
            {"url": url, "title": title, "content": snippet, "publishedDate": day and f"{day}T00:00:00", "engine": "x"}
            for title, url, day, snippet in self.found
        ]
        return _json({"query": given["q"], "number_of_results": 0, "results": results, "unresponsive_engines": []})

    def _brave(self, query: str, headers: Any) -> Answer:
        given = dict(parse_qsl(query, strict_parsing=True))
        if headers.get("X-Subscription-Token") != KEY:
            return _json({"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}, 422)
        known = {"q", "count", "freshness", "result_filter", "text_decorations"}
        words, fresh = given.get("q", ""), given.get("freshness", "pd")
        fits = words and len(words) <= 400 and len(words.split()) <= 50 and 1 <= int(given.get("count", "20")) <= 20
        if given.keys() - known or not fits or fresh not in ("pd", "pw", "pm", "py"):
            return _json({"type": "ErrorResponse", "error": {"code": "VALIDATION"}}, 422)
        if headers.get("Accept") != "application/json":
            return 406, "text/plain", b""
        self.queries.append(given)
        results = [
            {"title": title, "url": url, "description": snippet, "page_age": day and f"{day}T10:00:00", "type": "x"}
            for title, url, day, snippet in self.found
        ]
        return _json({"type": "search", "query": {"original": words}, "web": {"type": "search", "results": results}})


def _json(value: object, status: int = 200) -> Answer:
    return status, "application/json", orjson.dumps(value)


@contextmanager
def site() -> Iterator[Site]:
    """Serve a site while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, kind, body = served.answer(self.path, self.headers)
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Site(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
