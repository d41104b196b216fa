"""Questions to other servers that somebody waits for: asked beside the pages, whose threads are few (threat T16)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import wraps
from typing import Concatenate

import structlog
from channels.db import database_sync_to_async
from django.contrib import messages
from django.http import HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from agents.shares import Shares
from agents.signed_in import SignedInRequest

log = structlog.get_logger(__name__)

ASKED_AT_ONCE = 4

_threads = ThreadPoolExecutor(ASKED_AT_ONCE, thread_name_prefix="outside")
_asking = Shares(lambda: 1)
waiting = Shares(lambda: 1)
"""Requests whose threads wait for another server, of pages and of the API."""

type View[**P] = Callable[Concatenate[SignedInRequest, P], HttpResponseBase]


class Busy(Exception):
    """This user waits for an answer already."""


def waits_outside[**P](view: View[P], method: str = "POST", instead: str = "") -> View[P]:
    """A page whose form is looked up or asked about elsewhere while its thread waits: one at a time for each user.

    Args:
        method: by which it waits.
        instead: the page that says so to who comes meanwhile, for whom the answer to a form would be none.
    """

    @wraps(view)
    def alone(request: SignedInRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if request.method != method:
            return view(request, *args, **kwargs)
        with waiting.one(request.user.pk) as begun:
            if not begun:
                words = _("Another connection is being looked up. Try again in a moment.")
                if not instead:
                    return HttpResponse(words, status=429)
                messages.error(request, words)
                return redirect(instead)
            return view(request, *args, **kwargs)

    return alone


def answer_later[T](
    user_id: int,
    ask: Callable[[], T],
    tell: Callable[[T], str],
    keep: Callable[[T], None] | None = None,
    *,
    failed: str,
) -> StreamingHttpResponse:
    """Answer with the HTML that `tell` makes of what `ask` returns, once `keep` has written it down. While it waits,
    the request holds neither a thread nor a connection to the database, which only `keep` may use. `ask` must come to
    an end by itself, also when nobody waits any more; then nothing is kept.

    Args:
        failed: the HTML when one of them fails, with which nobody reckoned. The browser has been told by then that all
            is well, and would wait for ever.

    Raises:
        Busy: one question at a time for each user.
    """
    if not _asking.begin(user_id):
        raise Busy
    asked: Future[T] = _threads.submit(copy_context().run, _asked, user_id, ask)
    return StreamingHttpResponse(_when_done(asked, tell, keep, failed))


def _asked[T](user_id: int, ask: Callable[[], T]) -> T:
    try:
        return ask()
    finally:
        _asking.end(user_id)


async def _when_done[T](
    answer: Future[T], tell: Callable[[T], str], keep: Callable[[T], None] | None, failed: str
) -> AsyncIterator[bytes]:
    """Who leaves does not cancel the question: otherwise one that had not begun would count for ever."""
    try:
        said = await asyncio.shield(asyncio.wrap_future(answer))
        if keep is not None:
            await database_sync_to_async(keep)(said)
        told = tell(said)
    except Exception:
        log.exception("a question to another server failed")
        told = failed
    yield told.encode()
