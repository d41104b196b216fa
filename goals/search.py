"""One box over everything of a user: notes, documents, what was said, earlier sessions, learnings, files, goals with
what is measured of them, their plans and times, and skills (mission E4).

All words must be found, each as the beginning of one; when nothing has them, names that look alike are offered. What
was said is searched in the live sessions alone: the archives hold the rest.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection
from django.urls import reverse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _

from agents.live.turns import where_of_messages
from agents.refusals import Refused
from agents.services import assistant_of
from agents.shares import Shares
from goals.context import other_places
from goals.models import Goal
from memory.text import clean

MOST: Final = 12
"""Of each kind."""
WORDS: Final = 10
INDEXED: Final = 100_000
"""Characters of a text that are searched: an index row takes only so many different words (case STO-03)."""
AT_ONCE: Final = 3
"""Searches of one user in one process: somebody types on while the first letters are looked for (threat T16)."""
BEFORE, SHOWN = 80, 240
"""Characters of the place that is shown: before the first word, and in all."""


_searches = Shares(lambda: AT_ONCE)


class Kind(StrEnum):
    GOAL = "goal"
    NOTE = "note"
    MESSAGE = "message"
    SESSION = "session"
    LEARNING = "learning"
    DOCUMENT = "document"
    FILE = "file"
    SKILL = "skill"
    TIME = "time"
    MEASURED = "measured"
    STEP = "step"


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose it is: an agent with a conversation."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class Hit:
    """`text` is the place in it, `shown` the same with marks; `name` what it is called, and `of` whose it is."""

    kind: Kind
    id: UUID
    thread: UUID | None
    name: str
    text: str
    words: Sequence[str]
    at: datetime
    address: str
    of: str

    @property
    def shown(self) -> SafeString:
        """The text with the words that were looked for marked, each where one begins."""
        pieces = re.split(rf"\b({'|'.join(map(re.escape, self.words))})", self.text, flags=re.IGNORECASE)
        marked = (f"<mark>{escape(piece)}</mark>" if n % 2 else escape(piece) for n, piece in enumerate(pieces))
        return mark_safe("".join(marked))  # noqa: S308 (escaped)


# What markdown only says of the form of lines: headings, points, tables.
_FORM: Final = re.compile(r"^[ \t]*(#{1,6}|[-*+])[ \t]|\|[ \t|:-]*", re.MULTILINE)

# Each finds (kind, id, thread, name, text, at, number) of one user's things.
PARTS: Final = f"""
SELECT 'goal' AS kind, g.id, g.thread_id AS thread, g.title AS name, g.description AS text, g.created_at AS at,
  0 AS number
FROM goals_goal g WHERE g.user_id = %(user)s
  AND to_tsvector('simple', g.title || ' ' || left(g.description, {INDEXED})) @@ q
UNION ALL
SELECT * FROM (
  SELECT 'note', n.id, n.thread_id, n.title, left(n.body, {INDEXED}), n.updated_at, 0
  FROM memory_note n WHERE n.user_id = %(user)s
    AND to_tsvector('simple', n.title || ' ' || left(n.body, {INDEXED})) @@ q
  ORDER BY n.updated_at DESC LIMIT {MOST}) notes
UNION ALL
SELECT * FROM (
  SELECT 'message', m.id, t.id, '', left(m.content, {INDEXED}), m.created_at, 0
  FROM memory_thread t JOIN memory_threadmessage m ON m.thread_id = t.id
  WHERE t.user_id = %(user)s AND m.message_type = 'text' AND m.source <> 'error'
    AND NOT m.metadata ?| ARRAY['thinking', 'interim', 'decision', 'schedule']
    AND m.position > coalesce((SELECT max(h.position) FROM memory_agenthistory h
      WHERE h.thread_id = t.id AND h.status = 'done'), 0)
    AND to_tsvector('simple', left(m.content, {INDEXED})) @@ q
  ORDER BY m.created_at DESC LIMIT {MOST}) messages
UNION ALL
SELECT * FROM (
  SELECT 'session', s.id, s.thread_id, s.title, s.summary || ' … ' || s.text, s.ended_at, 0
  FROM memory_agenthistory s JOIN memory_thread t ON t.id = s.thread_id
  WHERE t.user_id = %(user)s AND s.status = 'done'
    AND to_tsvector('simple', s.title || ' ' || s.summary || ' ' || s.text) @@ q
  ORDER BY s.ended_at DESC LIMIT {MOST}) sessions
UNION ALL
SELECT * FROM (
  SELECT 'learning', l.id, l.thread_id, '', l.text, l.created_at, l.number
  FROM memory_learning l WHERE l.user_id = %(user)s AND l.ended_at IS NULL AND to_tsvector('simple', l.text) @@ q
  ORDER BY l.created_at DESC LIMIT {MOST}) learnings
UNION ALL
SELECT * FROM (
  SELECT 'document', d.id, d.thread_id, d.name, left(d.text, {INDEXED}), d.updated_at, 0
  FROM memory_document d WHERE d.user_id = %(user)s
    AND to_tsvector('simple', d.name || ' ' || left(d.text, {INDEXED})) @@ q
  ORDER BY d.updated_at DESC LIMIT {MOST}) documents
UNION ALL
SELECT * FROM (
  SELECT 'file', g.id, f.workspace_id, f.path, '', f.updated_at, 0
  FROM tools_workspacefile f JOIN goals_goal g ON g.thread_id = f.workspace_id
  WHERE g.user_id = %(user)s
    AND to_tsvector('simple', regexp_replace(f.path, '[^[:alnum:]]+', ' ', 'g')) @@ q
  ORDER BY f.updated_at DESC LIMIT {MOST}) files
UNION ALL
SELECT 'skill', k.id, NULL, k.name, k.description || ' … ' || left(k.text, {INDEXED}), k.updated_at, 0
FROM memory_skill k WHERE k.user_id = %(user)s
  AND to_tsvector('simple', k.name || ' ' || k.description || ' ' || left(k.text, {INDEXED})) @@ q
UNION ALL
SELECT * FROM (
  SELECT 'time', s.id, s.thread_id, '', s.intent, s.created_at, 0
  FROM goals_schedule s WHERE s.user_id = %(user)s AND s.kind IN ('recurring', 'once') AND s.intent <> ''
    AND (s.next_at IS NOT NULL OR s.paused) AND to_tsvector('simple', s.intent) @@ q
  ORDER BY s.created_at DESC LIMIT {MOST}) times
UNION ALL
SELECT 'measured', g.id, r.thread_id, r.name, '', r.created_at, 0
FROM goals_target r JOIN goals_goal g USING (thread_id)
WHERE r.user_id = %(user)s AND to_tsvector('simple', r.name) @@ q
UNION ALL
SELECT * FROM (
  SELECT 'measured', g.id, e.thread_id, '', e.note, e.created_at, 0
  FROM goals_measurement e JOIN goals_goal g USING (thread_id)
  WHERE e.user_id = %(user)s AND e.note <> '' AND to_tsvector('simple', e.note) @@ q
  ORDER BY e.created_at DESC LIMIT {MOST}) measured
UNION ALL
SELECT * FROM (
  SELECT 'step', p.id, p.thread_id, p.title, p.reason, coalesce(p.closed_at, p.created_at), 0
  FROM agents_planitem p WHERE p.user_id = %(user)s AND p.status <> 'dropped'
    AND to_tsvector('simple', p.title || ' ' || p.reason) @@ q
  ORDER BY p.created_at DESC LIMIT {MOST}) steps
"""  # noqa: S608 (constants)

FIND: Final = f"""
SELECT kind, id, thread, name, at, number,
  substr(text, greatest(1, strpos(lower(text), lower(%(first)s)) - {BEFORE}), {SHOWN})
FROM to_tsquery('simple', %(query)s) AS q, LATERAL ({PARTS}) found
ORDER BY ts_rank(setweight(to_tsvector('simple', left(name, 1000)), 'A')
  || to_tsvector('simple', left(text, {INDEXED})), q) DESC, at DESC
"""  # noqa: S608 (constants)

ALIKE: Final = f"""
SELECT kind, id, thread, name, at, 0, '' FROM (
  SELECT 'goal' AS kind, g.id, g.thread_id AS thread, g.title AS name, g.created_at AS at
  FROM goals_goal g WHERE g.user_id = %(user)s
  UNION ALL
  SELECT 'note', n.id, n.thread_id, n.title, n.updated_at FROM memory_note n WHERE n.user_id = %(user)s
  UNION ALL
  SELECT 'session', s.id, s.thread_id, s.title, s.ended_at
  FROM memory_agenthistory s JOIN memory_thread t ON t.id = s.thread_id WHERE t.user_id = %(user)s AND s.status = 'done'
) named
WHERE strict_word_similarity(%(said)s, name) >= 0.4 ORDER BY strict_word_similarity(%(said)s, name) DESC LIMIT {MOST}
"""  # noqa: S608 (constants)


def search(user: User, said: str) -> list[Hit]:
    """What has all the words of `said`, best first; nothing for no words. What helpers did is left out.

    Raises:
        Refused: this user searches AT_ONCE times already. Whoever has much keeps the database busy for seconds.
    """
    words = re.findall(r"\w+", clean(said))[:WORDS]
    if not words:
        return []
    with _searches.one(user.pk) as begun:
        if not begun:
            raise Refused("too_many_searches", _("Your last search has not ended yet. Try again in a moment."))
        return _found(user, words)


def _found(user: User, words: Sequence[str]) -> list[Hit]:
    query = " & ".join(f"{word}:*" for word in words)
    rows = _rows(FIND, {"user": user.pk, "query": query, "first": words[0]}) or _rows(
        ALIKE, {"user": user.pk, "said": " ".join(words)}
    )
    owners = _owners(user, {row[2] for row in rows})
    places = where_of_messages([row[1] for row in rows if row[0] == Kind.MESSAGE])
    return [_hit(row, owners[row[2]], words, places.get(row[1], "")) for row in rows if row[2] in owners]


def _owners(user: User, threads: Collection[UUID | None]) -> dict[UUID | None, Owner]:
    """By thread; also of goals that were put away. None: what is for all agents.

    Args:
        threads: that are looked for.
    """
    assistant = assistant_of(user)
    goals = Goal.objects.for_user(user).values_list("thread_id", "title", "pk")
    found: dict[UUID | None, Owner] = {
        thread: Owner(title, reverse("goal", args=[goal])) for thread, title, goal in goals
    }
    for_all = Owner(_("All agents"), reverse("documents"))
    if not found.keys() >= set(threads) - {assistant.thread_id, None}:
        found |= {thread: Owner(place.title, place.url) for thread, place in other_places(user).items()}
    return found | {assistant.thread_id: Owner(assistant.name(), reverse("assistant")), None: for_all}


def _rows(sql: str, parameters: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, dict(parameters))
        rows: Sequence[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _hit(row: tuple[Any, ...], owner: Owner, words: Sequence[str], place: str) -> Hit:
    """place: of a message, in the conversation."""
    kind, found, thread, name, at, number, text = row
    kind = Kind(kind)
    address = _address(kind, found, thread, name, number, owner) + place
    plain = text if kind == Kind.FILE else _FORM.sub(" ", text.replace("**", "").replace("`", ""))
    return Hit(kind, found, thread, name, " ".join(plain.split()), words, at, address, owner.title)


def _address(kind: Kind, found: UUID, thread: UUID | None, name: str, number: int, owner: Owner) -> str:
    match kind:
        case Kind.NOTE:
            return reverse("note", args=[found])
        case Kind.SESSION:
            return reverse("session", args=[found])
        case Kind.LEARNING:
            return f"{reverse('memory', args=[thread])}#l{number}"
        case Kind.DOCUMENT:
            return reverse("own_document", args=[thread, name]) if thread else reverse("document", args=[name])
        case Kind.FILE:
            return reverse("goal_file", args=[found, name])
        case Kind.SKILL:
            return reverse("skill", args=[found])
        case Kind.TIME:
            return reverse("thread_schedules", args=[thread])
        case Kind.MEASURED:
            return reverse("goal_measured", args=[found])
    return owner.url
