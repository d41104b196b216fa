"""What texts said before they were changed (mission E1): what counts as one change, and how many are kept."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import QuerySet
from django.utils import timezone

from memory.note import Author

VERSIONS: Final = 100
"""Of one text."""
SITTING: Final = timedelta(minutes=10)
"""What a user changes so soon after their last change belongs to it: the editor saves by itself."""


def goes_on(last_editor: str, changed_at: datetime, editor: str) -> bool:
    """Whether the user has not stopped typing."""
    return last_editor == editor == Author.USER and timezone.now() - changed_at < SITTING


def drop_oldest(versions: QuerySet[Any], most: int | None = None) -> None:
    """Of many the oldest go.

    Args:
        versions: of one text, the newest first.
        most: that stay; None: `VERSIONS`.
    """
    too_old = versions.values_list("pk", flat=True)[VERSIONS if most is None else most :]
    versions.filter(pk__in=list(too_old)).delete()
