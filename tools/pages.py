"""What stands at an address, as a model can read it."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from memory.text import clip
from tools.safe_fetch import Fetched

HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
UNKNOWN: Final = frozenset({"", "application/octet-stream", "binary/octet-stream"})
WRITTEN: Final = re.compile(r"text/.*|application/(.*\+)?(json|xml|yaml|x-yaml|toml|javascript|x-ndjson)")
LOOKS_LIKE_HTML: Final = re.compile(rb"\s*(<!doctype html|<html|<head|<body)", re.IGNORECASE)
CHARSET: Final = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
# Encodings of pages; Python knows others that take minutes for a megabyte, and some that are none of text.
CHARSETS: Final = re.compile(r"utf-?(8|16).*|ascii|iso(8859|2022).*|cp\d+|koi8.*|mac.*|gb.*|big5.*|euc.*|shift.*|johab")
HEAD: Final = 2_000
# Reading a page takes some 0.1 ms for each of its tags: of those that have many, it is not tried in a second way, and
# what comes after too many is not read.
MANY_TAGS: Final = 5_000
MOST_TAGS: Final = 20_000
# The parser takes a time for a tag that grows with the square of its attributes (78 s for 100,000 of them). So one is
# read up to this length, with attributes of which it is certain to every parser where they end; of others the name is.
LONGEST_TAG: Final = 4_000
OPENED: Final = re.compile(r"</?[a-zA-Z][^\s<>\"'/=]{0,100}+")
ATTRIBUTES: Final = re.compile(
    r"(?:[\s/]*+[^\s<>\"'/=]++(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s<>\"']++))?)*+[\s/]*+>"
)
NEXT: Final = re.compile(r"[<>]")
MOST_LINKS: Final = 50
LONGEST_TITLE: Final = 200


class NotReadable(Exception):
    """It is no text. The message says what it is."""


@dataclass(frozen=True, slots=True)
class Page:
    """`text`: of HTML in markdown, else as it is. date: as the page gives it, YYYY-MM-DD; may be empty, as the title.
    is_whole: False when there was more than was read."""

    text: str
    title: str = ""
    date: str = ""
    is_whole: bool = True


def page_of(fetched: Fetched) -> Page:
    """
    Raises:
        NotReadable: it is no text.
    """
    kind = fetched.content_type.partition(";")[0].strip()
    if kind in HTML or (kind in UNKNOWN and LOOKS_LIKE_HTML.match(fetched.body)):
        return _html(_text(fetched), fetched.url, fetched.is_whole)
    if b"\0" in fetched.body[:HEAD] and "16" not in fetched.content_type:
        raise _binary(kind, fetched)
    if WRITTEN.fullmatch(kind) or (kind in UNKNOWN and _is_utf8(fetched.body)):
        return Page(_text(fetched), is_whole=fetched.is_whole)
    raise _binary(kind, fetched)


def _binary(kind: str, fetched: Fetched) -> NotReadable:
    size = f"{len(fetched.body):,} bytes" if fetched.is_whole else f"more than {len(fetched.body):,} bytes"
    return NotReadable(f"It is no text but a file ({clip(kind, 80) or 'of an unknown kind'}, {size}).")


def _is_utf8(body: bytes) -> bool:
    """A character may be cut in two at the end."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(body)
    except UnicodeDecodeError:
        return False
    return True


def _text(fetched: Fetched) -> str:
    said = CHARSET.search(fetched.content_type) or CHARSET.search(fetched.body[:HEAD].decode("latin-1"))
    return fetched.body.decode(_codec(said[1]) if said else _guess(fetched.body), "replace").removeprefix("\ufeff")


def _guess(body: bytes) -> str:
    return "utf-8" if _is_utf8(body) else "cp1252"


def _codec(label: str) -> str:
    """As browsers do, what calls itself Latin 1 is taken for what nearly all of it is."""
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return "utf-8"
    if name in ("iso8859-1", "ascii"):
        return "cp1252"
    return name if CHARSETS.fullmatch(name) else "utf-8"


def _html(html: str, url: str, is_whole: bool) -> Page:
    from trafilatura import extract, extract_metadata, load_html

    cut = _cut(html)
    is_whole = is_whole and len(cut) == len(html)
    cut = _with_short_tags(cut)
    tree = load_html(cut)
    if tree is None or tree.tag != "html":  # a piece of a page
        tree = load_html(f"<html><body>{cut}</body></html>")
    if tree is None:
        return Page("", is_whole=is_whole)
    about = extract_metadata(tree, default_url=url, extensive=False)
    links = "\n".join(_links(tree, url))
    fast = cut.count("<") > MANY_TAGS
    found = extract(tree, url=url, output_format="markdown", include_links=True, include_comments=False, fast=fast)
    text = found or ""
    if "](http" not in text and links:
        text = f"{text}\n\nLinks:\n{links}".strip()
    return Page(text, clip(about.title or "", LONGEST_TITLE), about.date or "", is_whole)


def _cut(html: str) -> str:
    at = -1
    for _ in range(MOST_TAGS):
        if (at := html.find("<", at + 1)) < 0:
            return html
    return html[:at]


def _with_short_tags(html: str) -> str:
    """Shorten the tags, so that none is longer than LONGEST_TAG, however a parser reads quotes."""
    pieces, at = [], 0
    while tag := OPENED.search(html, at):
        pieces += [html[at : tag.start()], tag[0]]
        if rest := ATTRIBUTES.match(html, tag.end(), tag.end() + LONGEST_TAG):
            pieces.append(rest[0][:-1].replace("<", "&lt;").replace(">", "&gt;") + ">")
            at = rest.end()
        else:
            pieces.append(">")
            at = _end_of_tag(html, tag.end())
    return "".join([*pieces, html[at:]])


def _end_of_tag(html: str, at: int) -> int:
    """Where a tag ends of which nothing is read."""
    found = NEXT.search(html, at)
    return len(html) if found is None else found.end() if found[0] == ">" else found.start()


def _links(tree: Any, url: str) -> Iterator[str]:
    """The first links of a page: of one that is all links, what else is read of it leaves them out."""
    seen: set[str] = set()
    anchors: list[Any] = tree.xpath("//a[@href]")
    for anchor in anchors:
        name, address = clip(anchor.text_content()[:500], 100), _joined(url, anchor.get("href"))
        if name and address and address not in seen and len(seen) < MOST_LINKS:
            seen.add(address)
            yield f"- [{name}]({address})"


def _joined(url: str, href: str) -> str:
    try:
        address = urljoin(url, href.strip()).partition("#")[0]
        return address if urlsplit(address).scheme in ("http", "https") and " " not in address else ""
    except ValueError:
        return ""
