"""Instants in addresses."""

from datetime import UTC, datetime

from django.utils.dateparse import parse_datetime


def moment(text: str) -> datetime | None:
    """The instant that a page's own link names; None for anything else, such as one outside of all years."""
    try:
        found = parse_datetime(text)
        return found.astimezone(UTC) if found and found.tzinfo else None
    except (ValueError, OverflowError):
        return None
