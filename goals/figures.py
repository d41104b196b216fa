"""Figures as people write them, one by one and in lines, and as they are shown (mission H1)."""

import csv
import re
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal

from django.utils.translation import gettext as _

from agents.refusals import Refused
from memory.text import clip

_GROUPED = re.compile(r"([+-]?)([1-9]\d{0,2})([.,])(\d{3})", re.ASCII)
_FIGURE = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)", re.ASCII)
_THOUSANDS = {
    ",": re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+(\.\d*)", re.ASCII),
    ".": re.compile(r"[+-]?[1-9]\d{0,2}(\.\d{3})+(,\d*)", re.ASCII),
}
_MANY_GROUPS = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}(\1\d{3})+", re.ASCII)
_BEGIN = re.compile(r"[\s\"]*[\d.:/+TZ-]+[\s\"]*?([,;\t])", re.ASCII)
_DAYS = (
    re.compile(r"(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2})([T ].*)?", re.ASCII),
    re.compile(r"(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>\d{4})([ ,].*)?", re.ASCII),
)


class TwoWays(ValueError):
    """A figure that can be read in two ways; in words for people."""


def exact(value: float) -> str:
    """Every place of a value, and no exponent."""
    return f"{Decimal(repr(value)).normalize():f}"


def typed(value: float) -> str:
    """A value as it can be typed in again: `figure_of` refuses three places that could be thousands."""
    said = exact(value)
    return f"{said}0" if _GROUPED.fullmatch(said) else said


def figure_of(text: str, *, point: bool = False) -> float:
    """Read a figure as people write it, with a decimal point or comma, and between thousands blanks or the other one.

    Args:
        point: a point is known to be a decimal one.

    Raises:
        ValueError: it is none, or could be two of them; in words for people.
    """
    figure = "".join(text.split()).replace("\N{MINUS SIGN}", "-")
    grouped = _GROUPED.fullmatch(figure)
    if grouped and not (point and grouped[3] == "."):
        sign, begin, _mark, end = grouped.groups()
        raise TwoWays(
            _("“%(text)s” can be read in two ways: write %(plain)s, or %(point)s.")
            % {"text": figure, "plain": f"{sign}{begin}{end}", "point": typed(float(f"{sign}{begin}.{end}"))}
        )
    for mark, pattern in _THOUSANDS.items():
        if pattern.fullmatch(figure):
            return float(figure.replace(mark, "").replace(",", "."))
    if many := _MANY_GROUPS.fullmatch(figure):
        return float(figure.replace(many[1], ""))
    if not _FIGURE.fullmatch(figure):
        raise ValueError(_("“%(text)s” is not a figure. Write it like 72.5 or 72,5.") % {"text": clip(text, 40)})
    return float(figure.replace(",", "."))


def decoded(table: bytes) -> str:
    """The text of a file of lines; of one that is no UTF-8 as Windows writes it in the west."""
    try:
        return table.decode("utf-8-sig")
    except UnicodeDecodeError:
        return table.decode("cp1252", "replace")


def day_of(text: str) -> date:
    """Read a day like 2026-11-29 or 29.11.2026; a time after it is left out.

    Raises:
        ValueError: it is none, or could be two of them, such as 11/06/2026.
    """
    for pattern in _DAYS:
        if found := pattern.fullmatch(text):
            return date(int(found["y"]), int(found["m"]), int(found["d"]))
    raise ValueError(text)


def measured_lines(text: str) -> Iterator[tuple[float, date, str]]:
    """The value, day and note of each line of "day, value" or "day, value, note". Between them stands a comma, a
    semicolon or a tab. A heading is passed over.

    Raises:
        Refused: a line is none; it is named.
    """
    for number, line in enumerate(text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}").splitlines(), 1):
        begin = _BEGIN.match(line)
        mark = begin[1] if begin else ","
        try:
            (row,) = csv.reader([line], delimiter=mark, skipinitialspace=True)
            cells = [cell.strip() for cell in row]
            if not any(cells) or (number == 1 and _is_heading(line)):
                continue
            if mark == "," and _cuts_a_figure(line, cells):
                raise Refused(
                    "line",
                    _("Line %(n)d can be read in two ways: “%(line)s”. Put semicolons between day, value and note.")
                    % {"n": number, "line": clip(line, 60)},
                )
            by_program = mark == "," and "-" in cells[0]
            yield figure_of(cells[1], point=by_program), day_of(cells[0]), ", ".join(cells[2:])
        except TwoWays as two_ways:
            raise Refused("line", _("Line %(n)d: %(why)s") % {"n": number, "why": two_ways}) from None
        except (ValueError, IndexError, csv.Error):
            raise Refused(
                "line",
                _("Line %(n)d is not understood: “%(line)s”. Each is like 2026-11-29, 63.5.")
                % {"n": number, "line": clip(line, 60)},
            ) from None


def _is_heading(line: str) -> bool:
    """No column of it is a figure or a day: whoever wrote "yesterday, 5" meant a measurement."""
    return not any(re.match(r"[\s\"]*[+-]?\d", column) for column in re.split(r"[,;\t]", line))


def _cuts_a_figure(line: str, cells: Sequence[str]) -> bool:
    """Whether the comma after the value may be a decimal one: `2026-11-29, 76,9`."""
    if len(cells) < 3 or not re.fullmatch(r"[+-]?\d+", cells[1]) or not re.fullmatch(r"\d+([.,]\d+)?", cells[2]):
        return False
    return f"{cells[1]},{cells[2]}" in line
