"""The first thing that a text says, for lists."""

import html
import re

from django.utils.html import strip_tags

from agents.live.markdown import render
from memory.text import clip

SHORTEST = 16
TITLE_LENGTH = 90
TEXT_LENGTH = 280
_HEADING = re.compile(r"<h[2-4]>(.+?)</h[2-4]>(.*)", re.DOTALL)
_SENTENCE = re.compile(r"(.+?[.!?])(?:\s+|$)(.*)", re.DOTALL)
_BOXES = re.compile(r'<div class="(?:table-wrap|code)">.*?</div>', re.DOTALL)


def headline(markdown: str, shortest: int = SHORTEST) -> tuple[str, str]:
    """Split a text into its heading or first sentence and what comes next, both plain and short.

    shortest: characters of a first sentence that says enough.
    """
    rendered = _BOXES.sub("", render(markdown[:4000]))
    heading = _HEADING.match(rendered)
    if heading:
        return clip(_plain(heading[1]), TITLE_LENGTH), clip(_plain(heading[2]), TEXT_LENGTH)
    plain = _plain(rendered)
    first, rest = _first_sentence(plain)
    if len(first) < shortest and rest:  # "Done." says nothing yet
        first, rest = _first_sentence(rest)
    if len(first) > TITLE_LENGTH:
        return clip(first, TITLE_LENGTH), clip(plain, TEXT_LENGTH)
    return first.rstrip("."), clip(rest, TEXT_LENGTH)


def _first_sentence(text: str) -> tuple[str, str]:
    sentence = _SENTENCE.fullmatch(text)
    return (sentence[1], sentence[2]) if sentence else (text, "")


def _plain(rendered: str) -> str:
    return html.unescape(strip_tags(rendered)).strip()
