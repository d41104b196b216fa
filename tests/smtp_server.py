"""A small mail server over a real socket (RFC 5321), which can refuse, put off and fall silent."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default


class MailServer(socketserver.ThreadingTCPServer):
    """answers: to RCPT, and to what was sent with DATA; "drop" takes that and breaks off."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.letters: list[EmailMessage] = []
        self.to_recipient = "250 fine"
        self.to_letter = "250 taken"

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class Session(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("220 mail.test ESMTP")
        while line := self.rfile.readline().decode().strip():
            verb = line.split(maxsplit=1)[0].upper()
            if verb == "DATA":
                self._say("354 go on")
                self._take()
                if self.server.to_letter == "drop":
                    return
                self._say(self.server.to_letter)
            elif verb == "QUIT":
                self._say("221 bye")
                return
            else:
                self._say(self.server.to_recipient if verb == "RCPT" else "250 fine")

    def _take(self) -> None:
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line)
        self.server.letters.append(message_from_bytes(b"".join(lines), policy=default))

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[MailServer]:
    with MailServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
