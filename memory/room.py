"""How much is kept of what one user, their agents and their devices have written, and whether there is room for more
(threat T16)."""

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.db import connection
from django.template.defaultfilters import filesizeformat

from memory.locks import TEXT_LOCK

ROW: Final = 1_000
"""Bytes that each text counts beside its own: many small ones fill a disk and take time, too."""

# The length of a long text is known without reading it: 20,000 texts take 4 ms, 110,000 take 31.
USED: Final = """
SELECT coalesce(sum(bytes + %(row)s), 0)::bigint FROM (
  SELECT octet_length(body) AS bytes FROM memory_note WHERE user_id = %(user)s
  UNION ALL SELECT octet_length(v.body) FROM memory_noteversion v JOIN memory_note n ON n.id = v.note_id
    WHERE n.user_id = %(user)s
  UNION ALL SELECT octet_length(text) FROM memory_document WHERE user_id = %(user)s
  UNION ALL SELECT octet_length(v.text) FROM memory_documentversion v JOIN memory_document d ON d.id = v.document_id
    WHERE d.user_id = %(user)s
  UNION ALL SELECT octet_length(text) FROM memory_skill WHERE user_id = %(user)s
  UNION ALL SELECT octet_length(f.content) FROM memory_skillfile f JOIN memory_skill k ON k.id = f.skill_id
    WHERE k.user_id = %(user)s
  UNION ALL SELECT octet_length(v.text) + octet_length(v.files) FROM memory_skillversion v
    JOIN memory_skill k ON k.id = v.skill_id WHERE k.user_id = %(user)s
  UNION ALL SELECT octet_length(text) FROM memory_learning WHERE user_id = %(user)s) texts
"""


def make_sure_of_room(user_id: int, more: int, refused: Callable[[str], Exception], *, wait: bool = True) -> None:
    """Within the transaction that fills it.

    Args:
        more: bytes of text that are added.
        wait: until others who write for this user are through, so that they count. Whoever holds rows that people may
            wait for does not: a run writes one text at a time, and by so much the quota may be exceeded.

    Raises:
        refused: with the reason, for people and models.
    """
    most = settings.WAYMARK_TEXT_QUOTA
    if not most or more <= 0:
        return
    if wait:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [TEXT_LOCK, user_id])
    taken = used(user_id)
    if taken + more + ROW > most:
        raise refused(
            f"There is no room for it: notes, documents, skills and learnings, with what they said before, take "
            f"{filesizeformat(taken)} of {filesizeformat(most)}. Delete some first."
        )


def used(user_id: int) -> int:
    """Bytes of all that counts."""
    with connection.cursor() as cursor:
        cursor.execute(USED, {"user": user_id, "row": ROW})
        (taken,) = cursor.fetchone()
    return int(taken)


def size(*texts: str) -> int:
    """In bytes."""
    return sum(len(text.encode()) for text in texts)
