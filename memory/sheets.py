"""Lines of CSV that a spreadsheet takes as they are meant."""

import csv
import io
from collections.abc import Iterable

# What makes a spreadsheet take a cell for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def line(cells: Iterable[object]) -> str:
    """All are quoted: a spreadsheet may part them at something else than commas. Texts that look like formulas begin
    with an apostrophe; figures stay as they are."""
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerow(map(_cell, cells))
    return written.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.lstrip().startswith(_FORMULA) else value
