"""Markdown for a terminal: bold, headings, lists, quotes, code and tables, by the signs of ECMA-48 that all know."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

# What a text must not do to the terminal that shows it: move about, colour, rename the window.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BOLD, _PLAIN = "\x1b[1m", "\x1b[22m"
_CODE, _NO_CODE = "\x1b[36m", "\x1b[39m"
_STYLES: Final = {
    "strong_open": _BOLD,
    "strong_close": _PLAIN,
    "em_open": "\x1b[3m",
    "em_close": "\x1b[23m",
    "s_open": "\x1b[9m",
    "s_close": "\x1b[29m",
    "softbreak": "\n",
    "hardbreak": "\n",
}
_RULE: Final = "─" * 40

_md = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def styled(markdown: str) -> str:
    """Whole blocks of markdown, as lines that end with a line break each."""
    drawn = _Drawn()
    for token in _md.parse(harmless(markdown)):
        drawn.take(token)
    return "".join(f"{line}\n" for line in drawn.lines)


def harmless(text: str) -> str:
    """Text without what a terminal would obey."""
    return _CONTROLS.sub("", text)


@dataclass(slots=True)
class _Drawn:
    """
    before: what stands before each line: of a quote its bar, of an item of a list as many blanks as its mark is wide.
    mark: of an item whose first line is still to come. counts: of the lists that are open; None: it has none.
    """

    lines: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    mark: str = ""
    counts: list[int | None] = field(default_factory=list)
    cells: list[str] = field(default_factory=list)
    in_table: bool = False
    in_heading: bool = False

    def take(self, token: Token) -> None:
        match token.type:
            case "inline":
                self._words("".join(_inline(token.children or [])))
            case "fence" | "code_block":
                for line in token.content.splitlines():
                    self._line(f"  {_CODE}{line}{_NO_CODE}")
            case "hr":
                self._line(_RULE)
            case "tr_close":
                self._line(" │ ".join(self.cells))
                self.cells = []
            case _:
                self._nest(token)
        if token.level == 0 and token.nesting <= 0 and token.type != "inline":
            self.lines.append("")

    def _nest(self, token: Token) -> None:
        match token.type:
            case "heading_open" | "heading_close":
                self.in_heading = token.nesting > 0
            case "table_open" | "table_close":
                self.in_table = token.nesting > 0
            case "bullet_list_open" | "ordered_list_open":
                ordered = token.type == "ordered_list_open"
                self.counts.append(int(token.attrs.get("start", 1)) if ordered else None)
            case "bullet_list_close" | "ordered_list_close":
                self.counts.pop()
            case "list_item_open":
                self._item()
            case "blockquote_open":
                self.before.append("│ ")
            case "list_item_close" | "blockquote_close":
                self.before.pop()
                self.mark = ""

    def _item(self) -> None:
        count = self.counts[-1]
        self.mark = "• " if count is None else f"{count}. "
        self.counts[-1] = None if count is None else count + 1
        self.before.append(" " * len(self.mark))

    def _words(self, text: str) -> None:
        if self.in_table:
            self.cells.append(text)
            return
        for line in text.split("\n"):
            self._line(f"{_BOLD}{line}{_PLAIN}" if self.in_heading else line)

    def _line(self, line: str) -> None:
        before = "".join(self.before)
        if self.mark:
            before, self.mark = before[: -len(self.mark)] + self.mark, ""
        self.lines.append(before + line)


def _inline(tokens: Sequence[Token]) -> Iterator[str]:
    address = ""
    said: list[str] = []
    for token in tokens:
        match token.type:
            case "link_open":
                address, said = str(token.attrs.get("href", "")), []
                continue
            case "link_close":
                yield f" ({address})" if address != "".join(said) else ""
                continue
            case "code_inline":
                piece = f"{_CODE}{token.content}{_NO_CODE}"
            case other:
                piece = _STYLES.get(other, token.content)
        said.append(piece)
        yield piece
