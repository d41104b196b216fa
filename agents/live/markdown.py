"""Markdown as safe HTML, whole or while it is being written.

Raw HTML in the source is text (`html: False`), addresses may only be http, https or mailto, and nh3 has the last word
on what leaves this module. Link reference definitions are off: a later line could otherwise change an earlier block,
and a stream never touches a block again once it is finished. Cases REN-01 and REN-02.
"""

from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

import nh3
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from agents.live.half_open import close, hide_partial_fence
from agents.live.highlight import highlight

LONGEST = 200_000
"""Characters: a note's longest body. The work grows with the text, and some texts take a second for 20,000."""

_LEAVES = {"inline", "tr_open", "fence", "code_block"}
_BOXES = {"[ ] ": "☐ ", "[x] ": "☑ "}
_SCHEMES = {"http", "https", "mailto"}
_TEXT_TAGS = {"p", "br", "hr", "strong", "em", "s", "code", "pre", "blockquote", "ul", "ol", "li", "h2", "h3", "h4"}
_PART_TAGS = {"a", "table", "thead", "tbody", "tr", "th", "td", "div", "header", "span", "button"}
_ATTRIBUTES = {
    "a": {"href", "title"},
    "ol": {"start"},
    "th": {"data-num", "scope"},
    "td": {"data-num"},
    "pre": {"tabindex"},
    "button": {"type", "data-kind", "data-copy"},
}
_CLASSES = {
    "div": {"code", "table-wrap"},
    "table": {"table"},
    "span": {"k", "s", "m", "c", "copy-icon"},
    "button": {"btn"},
}
_cleaner = nh3.Cleaner(
    tags=_TEXT_TAGS | _PART_TAGS,
    attributes=_ATTRIBUTES,
    allowed_classes=_CLASSES,
    url_schemes=_SCHEMES,
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)


def render(text: str) -> SafeString:
    """Return the whole of `text` as HTML for inside `.prose`; what is longer than LONGEST, as it was written."""
    if len(text) > LONGEST:
        return format_html('<pre tabindex="0"><code>{}</code></pre>', text)
    return mark_safe("".join(_blocks(_normal(text))))  # noqa: S308 (nh3 made each block)


def render_stream(text: str) -> tuple[list[str], str]:
    """Return (HTML of the finished top-level blocks, HTML of the block still being written).

    For a text that only grows, the list only grows: a block, once finished, never changes. It ends equal to the first
    blocks of `render(text)`.
    """
    finished, tail = split(text[:LONGEST])
    return list(_finished(finished)), render_tail(tail)


@lru_cache(maxsize=256)
def _finished(text: str) -> tuple[str, ...]:
    """While one block is being written, the blocks before it are asked for again and again."""
    return tuple(_blocks(text))


def split(text: str) -> tuple[str, str]:
    """Cut `text` before its last block. Only whole lines decide, since a half line can still become anything."""
    text = _normal(text[:-1] if text.endswith("\r") else text)
    whole = text[: text.rfind("\n") + 1]
    starts = [token.map[0] for token in _md.parse(whole) if token.level == 0 and token.map and token.nesting >= 0]
    if len(starts) < 2:
        return "", text
    cut = sum(len(line) + 1 for line in whole.split("\n")[: starts[-1]])
    return text[:cut], text[cut:]


def render_tail(text: str) -> str:
    """Return one unfinished block as HTML, with half-open markup closed for the eye."""
    text = _normal(text)
    tokens = [token for token in _md.parse(text) if token.map and token.type in _LEAVES]
    if not tokens:
        return "".join(_blocks(close(text)))
    start, end = tokens[-1].map or (0, 0)
    if tokens[-1].type == "fence" and end > text.count("\n"):
        return "".join(_blocks(hide_partial_fence(text, tokens[-1].markup)))
    lines = text.split("\n")
    return "".join(_blocks("\n".join([*lines[:start], close("\n".join(lines[start:]))])))


def _blocks(text: str) -> list[str]:
    """Return the HTML of each top-level block."""
    blocks: list[str] = []
    group: list[Token] = []
    for token in _boxes(_md.parse(text)):
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            blocks.append(_cleaner.clean(_md.renderer.render(group, _md.options, {})))
            group = []
    return blocks


def _boxes(tokens: list[Token]) -> list[Token]:
    """Show `[ ]` and `[x]` at the start of list items as boxes."""
    for opener, inline in zip(tokens, tokens[2:], strict=False):
        if opener.type == "list_item_open" and inline.type == "inline" and inline.children:
            mark = _BOXES.get(inline.children[0].content[:4].lower())
            if mark:
                inline.children[0].content = mark + inline.children[0].content[4:]
    return tokens


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _address_is_allowed(url: str) -> bool:
    try:
        return urlsplit(url).scheme.lower() in _SCHEMES
    except ValueError:
        return False


class _Renderer(RendererHTML):
    """Our components instead of bare tags."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        words = tokens[idx].info.split()
        language = words[0][:32] if words else ""
        return (
            f'<div class="code"><header><span>{escape(language)}</span>'
            f'<button class="btn" data-kind="quiet" type="button" data-copy><span class="copy-icon"></span> {_("Copy")}'
            f'</button></header><pre tabindex="0"><code>{highlight(tokens[idx].content, language)}</code></pre></div>\n'
        )

    code_block = fence

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A picture from elsewhere is a leak (security.md T8): it is offered as a link."""
        source = str(tokens[idx].attrs.get("src", ""))
        return f'<a href="{escape(source)}">{escape(tokens[idx].content or source)}</a>'

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """The title says where a link leads, whatever its text claims."""
        address = str(tokens[idx].attrs.get("href", ""))
        return f'<a href="{escape(address)}" title="{escape(urlsplit(address).netloc or address)}">'

    def heading_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<{_heading(tokens[idx])}>"

    def heading_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"</{_heading(tokens[idx])}>\n"

    def table_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<div class="table-wrap"><table class="table">\n'

    def table_close(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f'<th scope="col"{_number(tokens[idx])}>'

    def td_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<td{_number(tokens[idx])}>"


def _heading(token: Token) -> str:
    """The page has the only h1; below h4 nothing looks different."""
    return f"h{min(int(token.tag[1]) + 1, 4)}"


def _number(token: Token) -> str:
    return " data-num" if "right" in str(token.attrs.get("style", "")) else ""


_md = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
_md.enable(["table", "strikethrough"]).disable("reference")
_md.validateLink = _address_is_allowed  # type: ignore[method-assign]
