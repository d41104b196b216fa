"""A program: the web server, with an application that fails. Its argument is the port."""

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import uvloop

from config import reactor


async def application(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: partial[Awaitable[None]]
) -> None:
    """/fails raises before it has answered, /begun while it does, and so does /unanswerable, which fails again
    when the server tells it; /connections answers with how many requests the server knows."""
    if scope["path"] == "/fails":
        raise RuntimeError("before the answer")
    (protocol,) = send.args
    known = b"%d" % len(protocol.server.connections)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": known, "more_body": scope["path"] != "/connections"})
    if scope["path"] == "/unanswerable":
        protocol.handle_exception = partial(_fail, protocol)
    if scope["path"] != "/connections":
        raise RuntimeError("in the middle of the answer")


def _fail(protocol: Any, _exception: BaseException) -> None:
    protocol.loseConnection()
    raise RuntimeError("while the server was ending it")


if __name__ == "__main__":
    reactor.install(uvloop.new_event_loop())
    from config.web_server import serve

    serve(application, [f"tcp:port={sys.argv[1]}:interface=127.0.0.1"])
