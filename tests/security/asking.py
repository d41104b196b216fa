"""Requests over real sockets, as somebody writes them who is no browser."""

import socket
from urllib.parse import urlsplit

CSRF = "x" * 32


def ask(address: str, method: str, path: str, session: str = "", seconds: float = 10) -> int:
    """Return the status of the answer, 0 when none came within `seconds`."""
    cookies = f"csrftoken={CSRF}; sessionid={session}"
    head = f"{method} {path} HTTP/1.1\r\nCookie: {cookies}\r\nX-CSRFToken: {CSRF}\r\nContent-Length: 0"
    try:
        return status_of(address, head, seconds)
    except TimeoutError:
        return 0


def status_of(address: str, head: str, seconds: float = 10) -> int:
    """Send the head of a request as it is; return the status of the answer."""
    place = urlsplit(address)
    with socket.create_connection((str(place.hostname), place.port or 0), timeout=seconds) as client:
        client.sendall(f"{head}\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n".encode())
        return int(client.recv(64).split()[1])
