"""The title and summary of a session: by a model, on record with its cost; or without one (mission B7)."""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

import psycopg
import structlog
from django.conf import settings
from django.utils import timezone

from agents.budgets import ledger
from agents.budgets.purse import Unpriced
from agents.budgets.room import OutOfBudget
from agents.connections import Choice, is_demo
from agents.engine import payment, thinking
from agents.models import CallStatus, ModelCall
from agents.prices import prices_of
from agents.prompts import text
from agents.providers.base import NOTHING_USED, Finish, ProviderError, Reply, Trouble, Usage
from agents.providers.pricing import plausible
from memory.agent_history import TITLE_LENGTH
from memory.archive import Reservation
from memory.archived import SUMMARY_LENGTH, Entry, Summary, conversation, fallback_summary
from memory.files import seen
from memory.models import Thread
from memory.pool import orm
from memory.text import clean, clip, shortened
from tools.cancel import Cancelled, CancelToken

log = structlog.get_logger(__name__)

# The request must fit where the session did not: each try reads so much less of it (case PRV-10).
SHRINKS = (1, 4, 16)
PART_LENGTH = 1_500
# What models set a title in, although they are asked not to.
MARKS = '#*_ \t"“”„«»'
UNFINISHED = {
    Finish.LENGTH: "The summary was cut off by the model's limit.",
    Finish.REFUSED: "The model declined to sum the session up.",
}


class SummaryFailed(Exception):
    """There is no summary this time; the message says why."""


def summarise(reservation: Reservation, choice: Choice | None, stop: CancelToken | None = None) -> Summary:
    """
    Args:
        choice: None when there is no model to ask.
        stop: ends the call early, when the run that waits for it is stopped.

    Raises:
        SummaryFailed: the model did not give one, or took too long.
        Cancelled: `stop` was set.
    """
    if choice is None or is_demo(choice) or reservation.tries >= settings.WAYMARK_SUMMARY_TRIES:
        return fallback_summary(reservation.entries)
    with _in_time(stop) as cancel:
        try:
            reply = _fitting(reservation, choice, cancel)
        except (OutOfBudget, Unpriced):
            return fallback_summary(reservation.entries)
        except ProviderError as error:
            raise SummaryFailed(error.message) from error
        except Cancelled:
            if stop is not None:
                stop.check()
            raise SummaryFailed("The summary took too long.") from None
        except psycopg.Error:
            raise
        except Exception as error:
            log.exception("summary failed")
            raise SummaryFailed("Something went wrong inside Waymark. The log has the details.") from error
    return _checked(reply, choice)


def _fitting(reservation: Reservation, choice: Choice, cancel: CancelToken) -> Reply:
    """
    Raises:
        ProviderError: as the last try had it.
    """
    *tries, last = (settings.WAYMARK_SUMMARY_INPUT_LENGTH // shrink for shrink in SHRINKS)
    for length in tries:
        try:
            return _recorded(reservation, choice, _session(reservation.entries, length), cancel)
        except ProviderError as error:
            if error.trouble is not Trouble.TOO_LONG:
                raise
    return _recorded(reservation, choice, _session(reservation.entries, last), cancel)


def _session(entries: Sequence[Entry], length: int) -> str:
    return f"<session>\n{shortened(escape(conversation(entries, PART_LENGTH)), length)}\n</session>"


def _recorded(reservation: Reservation, choice: Choice, words: str, cancel: CancelToken) -> Reply:
    """One call with its row: started and paid for before, and whatever became of it after."""
    row = _started(reservation, choice)
    since, system = time.monotonic(), text("summary")
    try:
        most = payment.reserve_beside(row, choice, system + words)
        reply = thinking.ask(choice, system, words, cancel, most)
    except (OutOfBudget, Unpriced):
        _finished(row, choice, CallStatus.CANCELLED, NOTHING_USED, since)
        raise
    except ProviderError as error:
        _finished(row, choice, CallStatus.FAILED, error.usage, since, error.message, is_denial=error.is_denial)
        raise
    except Cancelled:
        _finished(row, choice, CallStatus.CANCELLED, Usage(), since)
        raise
    except Exception as error:
        _finished(row, choice, CallStatus.FAILED, Usage(), since, type(error).__name__)
        raise
    _finished(row, choice, CallStatus.DONE, reply.usage, since)
    return reply


def _started(reservation: Reservation, choice: Choice) -> ModelCall:
    """Nobody else sums this thread up now, so a call that is still open was left by a worker that died."""
    with orm():
        thread = Thread.objects.get(pk=reservation.thread_id)
        for left in ModelCall.objects.filter(thread=thread, status=CallStatus.STARTED):
            ledger.lose_beside(left)
        return ModelCall.objects.create(thread=thread, provider=choice.endpoint.kind, model=choice.model)


def _finished(
    row: ModelCall,
    choice: Choice,
    status: CallStatus,
    usage: Usage,
    since: float,
    error: str = "",
    *,
    is_denial: bool = False,
) -> None:
    usage = plausible(usage)
    row.status, row.error, row.finished_at = status, error, timezone.now()
    row.input_tokens, row.output_tokens = usage.input_tokens, usage.output_tokens
    row.cached_tokens, row.written_tokens = usage.cached_tokens, usage.written_tokens
    row.estimated, row.answered_by = usage.estimated, usage.model
    row.latency_ms = round((time.monotonic() - since) * 1000)
    assert row.thread is not None, "it is beside the runs"
    row.cost = prices_of(row.thread.user_id).cost(choice.endpoint, choice.model, usage)
    payment.settle_beside(row, is_denial=is_denial)


def _checked(reply: Reply, choice: Choice) -> Summary:
    """
    Raises:
        SummaryFailed: it is blank, cut off or refused; half a summary would stand for the whole session.
    """
    if reply.finish in UNFINISHED:
        raise SummaryFailed(UNFINISHED[reply.finish])
    title, summary = titled(reply.message.text)
    if not (summary := clip(summary, SUMMARY_LENGTH)):
        raise SummaryFailed("The summary was empty.")
    return Summary(summary, choice.model, title)


def titled(said: str) -> tuple[str, str]:
    """Part title and summary, between which the prompt asks for an empty line. What begins with a sentence or is too
    long for a title has none: all of it is the summary."""
    first, _, rest = clean(said).strip().partition("\n\n")
    title = first.strip(MARKS)
    if not rest or "\n" in title or title.endswith(".") or len(title) > TITLE_LENGTH:
        return "", said
    return seen(title), rest


@contextlib.contextmanager
def _in_time(stop: CancelToken | None) -> Iterator[CancelToken]:
    """A token that is set when the summary's time is over, or `stop` is."""
    cancel = CancelToken()
    timer = threading.Timer(settings.WAYMARK_SUMMARY_SECONDS, cancel.cancel, ["too late"])
    timer.daemon = True
    timer.start()
    outer = stop.on_cancel(lambda: cancel.cancel(stop.reason)) if stop else contextlib.nullcontext()
    try:
        with outer:
            yield cancel
    finally:
        timer.cancel()
