"""Daphne, with a limit to what it reads of a request before anybody has looked at it, and without what nobody reads:
forms (Django parses them), lines of an access log."""

import logging
from collections import defaultdict
from io import BytesIO
from typing import Any
from weakref import WeakSet

from daphne import http_protocol, server, ws_protocol
from django.conf import settings
from twisted.web import http

logger = logging.getLogger(__name__)

# A proxy may be here, and everybody behind it.
THIS_MACHINE = ("127.0.0.1", "::1")
MOST_ADDRESSES = 1000
# All that a page says over its websocket is where it stands. Bytes.
LONGEST_MESSAGE = 4_096
# A phone that sends a photo over a bad network has this much more time for it. Bytes a second.
SLOWEST_UPLOAD = 50_000
REFUSAL = b"HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class LimitedChannel(http.HTTPChannel):
    """A connection. Twisted's time-out is for silence, so that a byte now and then holds one for ever; here it is for
    the whole of each request, until it is handed to the application."""

    def connectionMade(self) -> None:
        super().connectionMade()  # type: ignore[no-untyped-call]
        line: Any = self.transport
        if not self.factory.admits(line):
            line.abortConnection()

    def resetTimeout(self) -> None:
        """What has come so far gains no time."""


class LimitedRequest(http_protocol.WebRequest):
    """Daphne keeps a whole body in memory before it calls the application; a body that is too long is refused at its
    declared length, or where it passes the limit when none is declared."""

    received = 0
    refused = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, parsePOSTFormSubmission=False, **kwargs)
        self.channel.setTimeout(self.channel.timeOut)  # begins now, not with the end of the request before

    def gotLength(self, length: int | None) -> None:
        if (length or 0) > self._most:
            self._refuse()
            return
        if self._brings_files:
            self.channel.setTimeout(self.channel.timeOut + (length or 0) / SLOWEST_UPLOAD)
        super().gotLength(length)

    def handleContentChunk(self, data: bytes) -> None:
        if self.refused:
            return
        self.received += len(data)
        if self.received > self._most:
            self._refuse()
        else:
            super().handleContentChunk(data)

    def process(self) -> None:
        """Daphne lets a header move the addresses below another: strangers would pass a proxy's rule by it."""
        self.requestHeaders.removeHeader(b"Daphne-Root-Path")
        if not self.refused:
            super().process()

    def handle_exception(self, exception: BaseException) -> None:
        """Daphne would begin a second answer. By the end of the connection a client can tell that it has not all."""
        if self._response_started:
            self.loseConnection()
        else:
            super().handle_exception(exception)

    @property
    def _brings_files(self) -> bool:
        kind = (self.requestHeaders.getRawHeaders(b"content-type") or [b""])[0]
        return bool(kind.lower().startswith(b"multipart/form-data"))

    @property
    def _most(self) -> int:
        """Bytes. What is larger than a form comes with files, and is kept on disk until the application reads it."""
        return int(settings.WAYMARK_LARGEST_UPLOAD if self._brings_files else settings.WAYMARK_LARGEST_BODY)

    def _refuse(self) -> None:
        self.refused = True
        self.content = BytesIO()
        self.channel.transport.write(REFUSAL)
        self.channel.loseConnection()


class LimitedFactory(http_protocol.HTTPFactory):
    protocol = staticmethod(lambda: http._GenericHTTPChannelProtocol(LimitedChannel()))  # type: ignore[no-untyped-call]

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.timeOut = settings.WAYMARK_REQUEST_SECONDS
        self._lines: defaultdict[str, WeakSet[Any]] = defaultdict(WeakSet)

    def admits(self, line: Any) -> bool:
        """Count a connection, which may become a websocket. Its end is not told here, but can be seen."""
        host, most = line.getPeer().host, settings.WAYMARK_CONNECTIONS_PER_ADDRESS
        if not most or settings.WAYMARK_PROXIES or host in THIS_MACHINE:
            return True
        self._forget_ended()
        open_lines = [each for each in self._lines[host] if each.connected]
        self._lines[host] = WeakSet([*open_lines, line])
        return len(open_lines) < int(most)

    def _forget_ended(self) -> None:
        if len(self._lines) > MOST_ADDRESSES:
            ended = [host for host, lines in self._lines.items() if not any(each.connected for each in lines)]
            for host in ended:
                del self._lines[host]

    def log(self, request: http_protocol.WebRequest) -> None:
        """Twisted would put together a line for each request, and Daphne throws it away."""


class WideSocket(ws_protocol.WebSocketProtocol):
    """What goes out has no limit but that of what is drawn: a long conversation is sent in one frame. Autobahn knows
    one limit for both directions, and breaks off the connection of a page that it cannot tell everything."""

    maxMessagePayloadSize: int

    def serverSend(self, content: str | bytes, binary: bool = False) -> None:
        limit, self.maxMessagePayloadSize = self.maxMessagePayloadSize, 0
        try:
            super().serverSend(content, binary)
        finally:
            self.maxMessagePayloadSize = limit


class WideFactory(ws_protocol.WebSocketFactory):
    protocol = WideSocket


class LastingServer(server.Server):
    """Daphne looks each second for what has ended, to answer, log and forget it; it would not look again once it has
    failed in this."""

    def application_checker(self) -> None:
        try:
            super().application_checker()
        except Exception:
            logger.exception("what has ended was not all looked after")
            server.reactor.callLater(1, self.application_checker)


def serve(application: Any, endpoints: list[str]) -> None:
    """Serve until SIGTERM. Must be called after a reactor was chosen."""
    http_protocol.WebRequest = LimitedRequest
    server.HTTPFactory = LimitedFactory
    server.WebSocketFactory = WideFactory
    LastingServer(
        application=application,
        endpoints=endpoints,
        websocket_timeout=-1,
        websocket_max_message_size=LONGEST_MESSAGE,
        websocket_max_frame_size=LONGEST_MESSAGE,
        ping_interval=20,
        ping_timeout=30,
        verbosity=0,
        server_name="waymark",
    ).run()
