"""What agents know of earlier sessions: the last summaries in their prompt, and a search in all of them."""

import re
import zoneinfo
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID
from xml.sax.saxutils import escape

from memory import pool
from memory.text import clean, clip

SUMMARIES = 5
FOUND = 5
EXCERPTS = 3
EXCERPT_LENGTH = 240
# How alike a word of the question and one of a session must be, when no session has the words as they are.
ALIKE = 0.5
# Comparing letters is slow, so only the beginning of a session is compared. Characters.
COMPARED = 20_000

Timeframe = Literal["any", "today", "week", "month", "year"]
type Summary = tuple[str, str]

_SPANS: dict[Timeframe, timedelta] = {
    "today": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=31),
    "year": timedelta(days=366),
}

# For a thread that is called t: the times and summaries of its last sessions, oldest first, but for those that it is to
# forget. A thread without any is not looked up.
LAST_SUMMARIES = f"""
CASE WHEN t.generation > 0 THEN (
  SELECT coalesce(jsonb_agg(jsonb_build_array(s.ended_at, s.summary) ORDER BY s.generation), '[]') FROM (
    SELECT generation, ended_at, summary FROM memory_agenthistory
    WHERE thread_id = t.id AND status = 'done' AND summary <> ''
    ORDER BY generation DESC LIMIT {SUMMARIES}) s) ELSE '[]' END
"""  # noqa: S608 (a constant)

OF_THREAD = f"SELECT {LAST_SUMMARIES} FROM memory_thread t WHERE t.id = %(thread)s"  # noqa: S608 (constants)

_OF_SESSIONS = """
SELECT id, started_at, ended_at, title, summary, text, message_count, reason FROM memory_agenthistory
WHERE thread_id = %(thread)s AND status = 'done'
  AND (%(days)s::int IS NULL OR ended_at > clock_timestamp() - %(days)s::int * interval '1 day')
"""

NEWEST = f"{_OF_SESSIONS} ORDER BY generation DESC LIMIT %(most)s"

WORDS = f"""
{_OF_SESSIONS}
  AND to_tsvector('simple', title || ' ' || summary || ' ' || text) @@ websearch_to_tsquery('simple', %(query)s)
ORDER BY generation DESC LIMIT %(most)s
"""

LETTERS = f"""
SELECT id, started_at, ended_at, title, summary, text, message_count, reason FROM (
  SELECT s.*, strict_word_similarity(%(query)s, title || ' ' || summary || ' ' || left(text, {COMPARED})) AS alike
  FROM ({_OF_SESSIONS}) s) x
WHERE alike >= {ALIKE} ORDER BY alike DESC, ended_at DESC LIMIT %(most)s
"""  # noqa: S608 (constants)


@dataclass(frozen=True, slots=True)
class Session:
    """A session that was found, with the places where the words stand. reason: an ArchiveReason, why it ended."""

    id: UUID
    started_at: datetime
    ended_at: datetime
    title: str
    summary: str
    excerpts: list[str]
    message_count: int
    reason: str


def last_summaries(thread_id: UUID) -> list[Summary]:
    rows = pool.execute(OF_THREAD, {"thread": thread_id})
    return rows[0][0] if rows else []


def section(summaries: Sequence[Summary], time_zone: str) -> str:
    """The summaries as a section of the system prompt, the same bytes until the next session begins (mission C3).
    Empty when there are none.

    Args:
        summaries: (end as ISO time, summary), oldest first.
    """
    if not summaries:
        return ""
    zone = zoneinfo.ZoneInfo(time_zone)
    lines = "\n".join(
        f'<session ended="{datetime.fromisoformat(at).astimezone(zone):%Y-%m-%d %H:%M}">{escape(summary)}</session>'
        for at, summary in summaries
    )
    return f"\n<earlier_sessions>\n{lines}\n</earlier_sessions>\n"


def find_sessions(thread_id: UUID, query: str, timeframe: Timeframe = "any", most: int = FOUND) -> list[Session]:
    """Sessions of a thread that have the words of `query` (as in a web search: "quoted", or, -without), newest first;
    when none has, those with words that look alike. A blank query gives the newest."""
    query = clean(query).strip()
    span = _SPANS.get(timeframe)
    parameters = {"thread": thread_id, "query": query, "days": span.days if span else None, "most": most}
    if not query:
        rows = pool.execute(NEWEST, parameters)
    else:
        rows = pool.execute(WORDS, parameters) or pool.execute(LETTERS, parameters)
    return [_session(row, query) for row in rows]


def _session(row: tuple[Any, ...], query: str) -> Session:
    session_id, started_at, ended_at, title, summary, text, message_count, reason = row
    excerpts = list(_excerpts(text, query))
    return Session(session_id, started_at, ended_at, title, summary, excerpts, message_count, reason)


def _excerpts(text: str, query: str) -> Iterator[str]:
    """The first places where words of the query stand, with what is around them."""
    words = [word for word in re.findall(r"\w+", query) if word.lower() != "or"]
    if not words:
        return
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    end, found = 0, 0
    while found < EXCERPTS and (match := pattern.search(text, end)):
        start = max(end, match.start() - EXCERPT_LENGTH // 2)
        end = match.end() + EXCERPT_LENGTH // 2
        found += 1
        yield clip(text[start:end], EXCERPT_LENGTH + len(match[0]))
