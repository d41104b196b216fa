"""A conversation in a terminal: what a run says and does, as it happens."""

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from uuid import UUID

import redis
from django.core.management.base import OutputWrapper

from agents.live.announce import changed, posted
from agents.live.events import (
    EVENT,
    AnyEvent,
    ApprovalChanged,
    Failed,
    MessagePosted,
    RunChanged,
    Think,
    ToolComplete,
    ToolStart,
)
from agents.live.keys import kind_of, stream_key
from agents.live.markdown import split
from agents.live.snapshot import tip
from agents.live.steps import outcome, words_of
from agents.live.stream import redis_client
from agents.services import pick_answer, send_message
from agents.terminal_text import harmless, styled
from memory.metadata import MessageMetadata
from memory.models import LIVE, AgentRun, RunStatus, Source, Thread, ThreadMessage
from tools.models import ActionStatus

BLOCK_MS = 1000
MARKS = {"done": "✓", "unknown": "?"}
ENDED = {RunStatus.SUCCEEDED: "finished", RunStatus.FAILED: "failed", RunStatus.CANCELLED: "stopped"}


class Conversation:
    """One thread, followed over the live stream. What the stream loses is read from the database."""

    def __init__(self, thread: Thread) -> None:
        self.thread = thread
        self._cursor = ""
        self._seen: set[tuple[UUID, object]] = set()

    def say(self, text: str) -> AgentRun:
        """Send a message, of a number the answer of that number to an open question; return the run that answers it.

        Raises:
            Refused: the text is blank or too long.
        """
        self._cursor = tip(self.thread.pk)
        known = ThreadMessage.objects.filter(thread=self.thread)
        self._seen = {(pk, None) for pk in known.values_list("pk", flat=True)}
        question, pick = self._picked(text)
        accepted = pick_answer(question, pick) if question else send_message(self.thread, text)
        assert accepted.run_id is not None
        self._seen.add((accepted.message.pk, None))
        return AgentRun.objects.select_related("thread").get(pk=accepted.run_id)

    def _picked(self, text: str) -> tuple[ThreadMessage | None, int]:
        """The open question of which `text` is the number of an answer, and the place of that."""
        if len(text) != 1 or not text.isdecimal():
            return None, 0
        question = ThreadMessage.objects.unanswered().filter(thread=self.thread).order_by("-position").first()
        answers = question.metadata["asks"] if question else ()
        return (question if 1 <= int(text) <= len(answers) else None), int(text) - 1

    def follow(self, run: AgentRun) -> Iterator[AnyEvent]:
        """Yield events until the run has ended."""
        while True:
            for event in itertools.chain(self._live(), self._missed(run)):
                yield event
                if isinstance(event, RunChanged) and event.run == run.pk and event.status not in LIVE:
                    return

    def _live(self) -> Iterator[AnyEvent]:
        """Yield what the stream brings, until it is silent for a moment or has a gap."""
        while answer := self._arrived():
            for event_id, fields in _entries(answer):
                self._cursor = event_id.decode()
                if kind_of(fields[b"d"]) in ("reset", "open"):
                    return
                event = EVENT.validate_json(fields[b"d"])
                if not isinstance(event, MessagePosted) or self._is_new(event):
                    yield event

    def _arrived(self) -> object:
        """Wait a moment for events. Without Redis only the moment passes."""
        try:
            if self._cursor:
                return redis_client().xread({stream_key(self.thread.pk): self._cursor}, block=BLOCK_MS)
        except redis.RedisError:
            self._cursor = ""
        time.sleep(BLOCK_MS / 1000)
        return None

    def _missed(self, run: AgentRun) -> Iterator[AnyEvent]:
        """Yield from the database what did not come over the stream, and the run's end if it has come."""
        run.refresh_from_db()
        later = ThreadMessage.objects.filter(thread=self.thread, run=run).exclude(source=Source.USER)
        for event in map(posted, later.order_by("position")):
            if self._is_new(event):
                yield event
        if not run.is_live:
            yield changed(run)

    def _is_new(self, event: MessagePosted) -> bool:
        """Each try of a run that waits for its model is news, under the same id."""
        key = event.message, event.metadata.get("attempt")
        new = key not in self._seen
        self._seen.add(key)
        return new


class Screen:
    """Writes events as lines. Text is written as it comes, into a terminal block by block, with its markdown drawn."""

    def __init__(self, out: OutputWrapper) -> None:
        self._out = out
        self._text = ""
        self._drawn = 0  # how much of the text a terminal has shown
        self._styles = out.isatty() and os.environ.get("TERM") != "dumb"

    def show(self, event: AnyEvent) -> None:
        match event:
            case Think(text=text):
                self._piece(text)
            case ToolStart(tool=tool):
                self._line(f"  · {words_of(tool).doing} …")
            case ToolComplete():
                self._line(f"  {_told(event)} {event.summary}".rstrip())
            case ApprovalChanged(tool=tool, state="requested"):
                self._line(f"  ? {words_of(tool).deed}: waits for your approval, on the page of this conversation")
            case MessagePosted(source="agent", message_type="text", content=content, metadata=metadata):
                self._message(content, MessageMetadata.model_validate(metadata).asks or ())
            case MessagePosted(source="error", content=content, metadata={"attempt": attempt, **about}):
                count = f" ({attempt} of {about['of']})" if "of" in about else ""
                self._line(f"  ! {content} Trying again soon{count}.")
            case Failed(text=text):
                self._line(f"  ! {text}")
            case RunChanged(pause=float() as seconds) if seconds:
                self._line(f"  … the model's provider fails and is asked again in {seconds:.0f} s")
            case RunChanged(status=status, cost=cost) if status not in LIVE:
                self._line(f"  ({ENDED[RunStatus(status)]}, {'cost unknown' if cost is None else '$' + cost})")

    def _piece(self, text: str) -> None:
        self._text += text
        if not self._styles:
            self._write(text)
        elif "\n" in text:
            self._draw(split(self._text[self._drawn :])[0])

    def _message(self, content: str, answers: Sequence[str]) -> None:
        """The text has been on screen while it came, unless it did not come as a stream."""
        if self._text.strip() == content.strip():
            self._end_line()
        elif self._styles:
            self._end_line()
            self._write(styled(content))
        else:
            self._line(content)
        for number, words in enumerate(answers, 1):
            self._line(f"  {number}) {words}")

    def _line(self, text: str) -> None:
        self._end_line()
        self._write(f"{harmless(text) if self._styles else text}\n")

    def _end_line(self) -> None:
        if self._styles:
            self._draw(self._text[self._drawn :])
        elif self._text and not self._text.endswith("\n"):
            self._write("\n")
        self._text, self._drawn = "", 0

    def _draw(self, blocks: str) -> None:
        """Write the next blocks of the text, whole ones."""
        self._write(styled(blocks))
        self._drawn += len(blocks)

    def _write(self, text: str) -> None:
        self._out.write(text, ending="")
        self._out.flush()


def _told(event: ToolComplete) -> str:
    words = words_of(event.tool)
    if event.undone:
        return f"↶ Taken back: {words.done}"
    deed = f" {words.deed}" if event.status in (ActionStatus.CANCELLED, ActionStatus.UNKNOWN) else ""
    return f"{MARKS.get(event.status, '✗')} {outcome(words, event.status)}{deed}"


def _entries(answer: object) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
    """The entries of an XREAD of one stream, in either shape that redis-py may give (RESP 2 list, RESP 3 dict)."""
    pairs = answer.items() if isinstance(answer, dict) else answer
    assert isinstance(pairs, list) or hasattr(pairs, "__iter__")
    for _, entries in pairs:
        for batch in entries:
            yield from batch if isinstance(batch, list) else [batch]
