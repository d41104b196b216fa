"""The one way in which this server opens an address that a user, a model or another server has given (threat T9)."""

import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from ssl import SSLCertVerificationError
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
from django.conf import settings

from tools.addresses import AddressRefused
from tools.cancel import CancelToken

if TYPE_CHECKING:
    import httpcore2

    from tools.visiting import Visit

MOST_REDIRECTS: Final = 4
REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
UNPRINTABLE: Final = re.compile(r"[\x00-\x20\x7f\\]")
# gzip and zlib, told apart by their first bytes.
EITHER: Final = zlib.MAX_WBITS | 32


class FetchFailed(Exception):
    """Nothing came of it. The message says why, in words for the model and the user."""


class FetchRefused(FetchFailed):
    """The address is none that this server opens: trying again is of no use."""


class FetchUnsent(FetchFailed):
    """Nobody was reached, so nothing of the request has gone out."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """What stands at an address, whatever its status.

    url: where it was in the end. content_type: as it was said, in lower case; may be empty.
    is_whole: False when it was longer than was read. headers: by their names in lower case.
    """

    url: str
    status: int
    content_type: str
    body: bytes
    is_whole: bool
    headers: Mapping[str, str] = NOTHING


def safe_fetch(
    url: str,
    cancel: CancelToken,
    *,
    headers: Mapping[str, str] = NOTHING,
    anywhere: bool = False,
    body: bytes | None = None,
) -> Fetched:
    """Open an http(s) address, on the open internet only, and read what is there: of at most WAYMARK_FETCH_BYTES, in at
    most WAYMARK_FETCH_SECONDS for everything. Redirects are followed, each checked like the address itself. Private
    hosts are open that WAYMARK_FETCH_PRIVATE names. The proxies of the environment are not used: they would look the
    host up again, and elsewhere.

    Args:
        headers: beside our own. Another host than that of `url` does not get them.
        anywhere: the operator has given the address, so its host may be inside, at any port; hosts to which it
            redirects may not.
        body: to be sent there by POST. It is not carried on to where the address redirects.

    Raises:
        FetchUnsent: nobody was reached.
        FetchRefused: the address, or one to which it redirects, is none that may be opened.
        FetchFailed: it led nowhere, took too long, or broke off.
        Cancelled: as `cancel` says.
    """
    from tools.visiting import Visit, answer

    first = address = parsed(url)
    inside = {place_of(address)} if anywhere else private_places()
    visit = Visit(cancel, settings.WAYMARK_FETCH_SECONDS, inside)
    with cancel.on_cancel(visit.cut):
        for _ in range(MOST_REDIRECTS + 1):
            place = place_of(address)
            said = _said(address, headers if place == place_of(first) else NOTHING)
            asked = answer(address.scheme, place, address.raw_path, said, visit, body)
            with _in_words(address.host, visit), asked as given:
                location = _header(given, b"location")
                if given.status not in REDIRECTS or not location or body is not None:
                    return _read(address, given, cancel)
            address = parsed(location, address)
    raise FetchFailed(f"The address redirects more than {MOST_REDIRECTS} times.")


def parsed(url: str, base: httpx2.URL | None = None) -> httpx2.URL:
    """Raises: FetchRefused: it is no http(s) address, or holds a name or a password."""
    try:
        parts, address = urlsplit(url), (base.join(url) if base else httpx2.URL(url)).copy_with(fragment=None)
    except (ValueError, httpx2.InvalidURL):
        raise FetchRefused("This is no address.") from None
    if address.scheme not in ("http", "https") or not address.host or UNPRINTABLE.search(url):
        raise FetchRefused("An address must begin with http:// or https://, name a host and hold no blanks.")
    if "@" in parts.netloc:
        raise FetchRefused("An address may not hold a user name or a password.")
    return address


def place_of(address: httpx2.URL) -> tuple[str, int]:
    """The host of an address as it is looked up, and its port."""
    return address.raw_host.decode(), address.port or (443 if address.scheme == "https" else 80)


def listed(entry: str) -> tuple[str, int]:
    """A line of WAYMARK_FETCH_PRIVATE, such as wiki.home:8080."""
    parts = urlsplit(f"//{entry}")
    return parts.hostname or "", parts.port or 0


def private_places() -> set[tuple[str, int]]:
    """(host, port) of those inside that may be opened nevertheless."""
    return {listed(entry) for entry in settings.WAYMARK_FETCH_PRIVATE}


def _said(address: httpx2.URL, headers: Mapping[str, str]) -> dict[str, str]:
    own = {"Host": address.netloc.decode(), "User-Agent": f"Waymark/{settings.VERSION}", "Accept-Encoding": "gzip"}
    return {**own, "Accept": "text/html, text/*;q=0.9, */*;q=0.8", **headers}


@contextmanager
def _in_words(host: str, visit: "Visit") -> Iterator[None]:
    """Say what went wrong. A visit that was cut finds a broken connection, and is told why."""
    try:
        yield
    except AddressRefused as refused:
        raise FetchRefused(str(refused)) from refused
    except TimeoutError as error:
        raise _failure(visit)(f"{host} took longer than {settings.WAYMARK_FETCH_SECONDS:g} seconds.") from error
    except (OSError, HTTPException, zlib.error) as error:
        visit.cancel.check()
        raise _failure(visit)(_trouble(host, error)) from error


def _failure(visit: "Visit") -> type[FetchFailed]:
    return FetchFailed if visit.has_spoken else FetchUnsent


def _trouble(host: str, error: Exception) -> str:
    """Of an answer that is none nothing is repeated: those are words of whoever gave it."""
    if isinstance(error, SSLCertVerificationError):
        return f"{host} does not show a valid certificate ({error.verify_message})."
    if isinstance(error, OSError):
        return f"{host} could not be reached ({error.strerror or error})."
    return f"{host} gave an answer that breaks off or is none."


def _header(answer: "httpcore2.Response", name: bytes) -> str:
    return next((value.decode(errors="replace") for key, value in answer.headers if key.lower() == name), "")


def _read(address: httpx2.URL, answer: "httpcore2.Response", cancel: CancelToken) -> Fetched:
    longest: int = settings.WAYMARK_FETCH_BYTES
    said = {key.decode(errors="replace").lower(): value.decode(errors="replace") for key, value in answer.headers}
    packed = _unpacker(_header(answer, b"content-encoding").strip().lower())
    body, taken, content_type = bytearray(), 0, _header(answer, b"content-type").lower()
    for piece in answer.iter_stream():
        taken += len(piece)
        room = longest + 1 - len(body)
        body += packed.decompress(piece, room) if packed else piece[:room]
        if max(taken, len(body)) > longest:
            return Fetched(
                str(address), answer.status, content_type, bytes(body[:longest]), is_whole=False, headers=said
            )
    cancel.check()  # a body without a length ends like one that was cut
    if taken and packed and not packed.eof:
        raise HTTPException("what is packed breaks off")
    return Fetched(str(address), answer.status, content_type, bytes(body), is_whole=True, headers=said)


def _unpacker(encoding: str) -> "zlib._Decompress | None":
    """Return what unpacks the pieces of a body, each to no more bytes than there is room for: a few may hold millions.
    None: it is not packed.

    Raises: FetchFailed.
    """
    if encoding in ("", "identity"):
        return None
    if encoding in ("gzip", "x-gzip", "deflate"):
        return zlib.decompressobj(EITHER)
    raise FetchFailed("The answer is packed in a way for which was not asked.")
