"""Who searches the web for agents: one engine, chosen by the operator (mission D4)."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from html import unescape
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlencode

import orjson
from django.conf import settings

from memory.text import clip
from tools.cancel import CancelToken
from tools.safe_fetch import Fetched, safe_fetch

type Since = Literal["any", "day", "month", "year"]

BRAVE: Final = "https://api.search.brave.com/res/v1/web/search"
LONGEST_TITLE: Final = 160
LONGEST_SNIPPET: Final = 400
LONGEST_ADDRESS: Final = 2_000
DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
MARKUP: Final = re.compile(r"</?[a-z][^<>]{0,200}>", re.IGNORECASE)


class SearchFailed(Exception):
    """The engine gave no results. The message says why, in words for the model and the user."""


@dataclass(frozen=True, slots=True)
class Query:
    """`most`: results, at most 20. since: how old they may be."""

    words: str
    most: int
    since: Since = "any"


@dataclass(frozen=True, slots=True)
class Hit:
    """`date`: YYYY-MM-DD; may be empty, as the snippet."""

    title: str
    address: str
    date: str
    snippet: str


class Engine(Protocol):
    """`name`: by which people know it. missing: why it cannot search; empty when it can."""

    name: str

    def missing(self) -> str: ...
    def search(self, query: Query, cancel: CancelToken) -> list[Hit]:
        """Raises: SearchFailed, FetchFailed, Cancelled."""


class SearXNG:
    """A server of the operator's own, which may be inside the own network."""

    name = "SearXNG"

    def missing(self) -> str:
        return "" if settings.WAYMARK_SEARXNG_URL else "WAYMARK_SEARXNG_URL does not say where SearXNG is."

    def search(self, query: Query, cancel: CancelToken) -> list[Hit]:
        asked = {"q": query.words, "format": "json"}
        if query.since != "any":
            asked["time_range"] = query.since
        address = f"{settings.WAYMARK_SEARXNG_URL.rstrip('/')}/search?{urlencode(asked)}"
        answer = safe_fetch(address, cancel, headers={"Accept-Language": "*"}, anywhere=True)
        if answer.status == 403:
            raise SearchFailed("SearXNG refuses: its settings must allow the format json (search.formats).")
        results = _json(answer, self.name).get("results")
        return _hits(results, query, title="title", address="url", date="publishedDate", snippet="content")


class Brave:
    """The API of Brave Search."""

    name = "Brave Search"
    freshness: Mapping[str, str] = MappingProxyType({"day": "pd", "month": "pm", "year": "py"})

    def missing(self) -> str:
        return "" if settings.WAYMARK_BRAVE_KEY else "WAYMARK_BRAVE_KEY, the key to Brave Search, is not set."

    def search(self, query: Query, cancel: CancelToken) -> list[Hit]:
        """Longer queries than 400 characters or 50 words are refused there, so they are cut."""
        words = " ".join(query.words.split()[:50])[:400]
        asked = {"q": words, "count": query.most, "result_filter": "web", "text_decorations": "false"}
        if query.since != "any":
            asked["freshness"] = self.freshness[query.since]
        headers = {"Accept": "application/json", "X-Subscription-Token": settings.WAYMARK_BRAVE_KEY}
        answer = safe_fetch(f"{BRAVE}?{urlencode(asked)}", cancel, headers=headers)
        if answer.status in (401, 403, 422):
            raise SearchFailed("Brave Search does not take the key, or what was asked.")
        web = _json(answer, self.name).get("web")
        results = web.get("results") if isinstance(web, dict) else []
        return _hits(results, query, title="title", address="url", date="page_age", snippet="description")


class Ddgs:
    """Public search engines, asked as a browser would, without a key: for light use.

    It has a client of its own, which passes for a browser, and is not bound as `safe_fetch` is: all that can be given
    to it is a time (docs/security.md, "What ddgs may do").
    """

    name = "ddgs"

    def missing(self) -> str:
        return "" if _has_ddgs() else "The package ddgs is not installed."

    def search(self, query: Query, cancel: CancelToken) -> list[Hit]:
        from ddgs import DDGS
        from ddgs.exceptions import DDGSException

        from tools.visiting import Visit, in_time

        seconds = settings.WAYMARK_FETCH_SECONDS
        limit = None if query.since == "any" else query.since[0]
        client = DDGS(timeout=max(1, int(seconds)))
        try:
            found = in_time(
                lambda: client.text(query.words, max_results=query.most, timelimit=limit), Visit(cancel, seconds, ())
            )
        except TimeoutError as error:
            raise SearchFailed(f"The search engines did not answer within {seconds:g} seconds.") from error
        except DDGSException as error:
            if "No results" in str(error):
                return []
            raise SearchFailed(f"The search engines do not answer now: {clip(str(error), 200)}") from error
        return _hits(found, query, title="title", address="href", date="date", snippet="body")


ENGINES: Final[Mapping[str, Engine]] = MappingProxyType({"searxng": SearXNG(), "brave": Brave(), "ddgs": Ddgs()})


def engine() -> Engine | None:
    """The one that WAYMARK_SEARCH names; None when it names none."""
    return ENGINES.get(settings.WAYMARK_SEARCH)


def withheld() -> str:
    """Why nobody can search the web, in a sentence; empty when somebody can."""
    chosen = engine()
    why = chosen.missing() if chosen else "WAYMARK_SEARCH names nobody who searches: searxng, brave or ddgs."
    return why and f"{why} See “The web” in docs/operations.md."


@cache
def _has_ddgs() -> bool:
    return find_spec("ddgs") is not None


def _json(answer: Fetched, name: str) -> dict[str, Any]:
    if answer.status == 429:
        raise SearchFailed(f"{name} was asked too often. Try again later.")
    if answer.status != 200:
        raise SearchFailed(f"{name} answered with the status {answer.status}.")
    try:
        parsed = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        parsed = None
    if not isinstance(parsed, dict):
        raise SearchFailed(f"{name} gave an answer that is no JSON object, or too long.")
    return parsed


def _hits(results: object, query: Query, **fields: str) -> list[Hit]:
    """Results of any engine; `fields` are its names for those of a hit. Those that lead nowhere are left out."""
    rows = results if isinstance(results, list) else []
    return list(_each({key: row.get(name) for key, name in fields.items()} for row in rows if isinstance(row, dict)))[
        : query.most
    ]


def _each(rows: Iterator[dict[str, Any]]) -> Iterator[Hit]:
    for row in rows:
        address = str(row["address"] or "").strip()
        if (
            address.startswith(("http://", "https://"))
            and len(address) <= LONGEST_ADDRESS
            and len(address.split()) == 1
        ):
            day = DAY.match(str(row["date"] or ""))
            title = _plain(row["title"], LONGEST_TITLE) or address
            yield Hit(title, address, day[0] if day else "", _plain(row["snippet"], LONGEST_SNIPPET))


def _plain(text: object, longest: int) -> str:
    return clip(unescape(MARKUP.sub("", str(text or "")[: longest * 10])), longest)
