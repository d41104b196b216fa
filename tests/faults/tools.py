"""A tool of each effect class, those that hang, and one that needs approval. All but `jot` act on the sink, which
counts them outside the database."""

import os
import urllib.request
from typing import ClassVar

import orjson
from django.conf import settings
from pydantic import Field

from memory.models import Author, Thread
from memory.notes import create_note
from tools.base import Arguments, Effect, Outcome, Reversal, Risk, Tool, ToolContext, Wording


class Hold(Arguments):
    hold: float = Field(0, description="How long the other side takes to answer after the effect. Seconds.")


def act(kind: str, arguments: Hold, context: ToolContext, *, once: bool = False) -> None:
    """Take effect outside; `once`: only the first request of a call is held."""
    worker = os.environ.get("PGAPPNAME", "")
    about = {"run": context.run_id, "worker": worker, "hold": arguments.hold, "once": once}
    address = f"{os.environ['FAULTS_SINK']}/{kind}/{context.action_id}"
    request = urllib.request.Request(address, orjson.dumps(about), method="POST")
    with urllib.request.urlopen(request, timeout=settings.WAYMARK_MAX_SECONDS):
        pass


class Outside(Tool[Hold]):
    """Base: the effect is one request that carries the call's id."""

    wording = Wording("wrench", "Do", "Doing", "Did", "Could not do")
    pollable = True  # a plan may ask for many at once; that is no loop here
    Arguments = Hold

    def run(self, arguments: Hold, context: ToolContext) -> Outcome:
        act(self.name, arguments, context)
        return Outcome(f"{self.name} done")


class Peek(Outside):
    name = "peek"
    description = "Only looks."


class Put(Outside):
    name = "put"
    description = "May be repeated under the same key."
    effect = Effect.IDEMPOTENT
    reversal = Reversal.COMPENSABLE


class Mail(Outside):
    name = "mail"
    description = "Cannot be taken back and must never happen twice."
    effect = Effect.NON_IDEMPOTENT
    reversal = Reversal.COMPENSABLE
    parallel_safe: ClassVar[bool] = False


class Wire(Mail):
    name = "wire"
    description = "Like mail, and only with a person's word."
    risk = Risk.RESTRICTED


class Nap(Outside):
    name = "nap"
    description = "Only looks, and pays no heed to its stop signal, like every tool here; but little time is given."
    timeout_seconds = 1.0


class Fax(Mail):
    name = "fax"
    description = "Must never happen twice, and may hang."
    timeout_seconds = 1.0


class Jot(Tool[Hold]):
    """Local: a note whose title is the call's id."""

    name = "jot"
    description = "Writes into the same database."
    wording = Wording("notebook-pen", "Jot", "Jotting", "Jotted", "Could not jot")
    pollable = True
    effect = Effect.LOCAL
    reversal = Reversal.COMPENSABLE
    parallel_safe: ClassVar[bool] = False
    Arguments = Hold

    def run(self, arguments: Hold, context: ToolContext) -> Outcome:
        thread = Thread(pk=context.thread_id, user_id=context.user_id)
        create_note(thread, str(context.action_id), "", Author.AGENT)
        return Outcome("jot done")


class Balk(Jot):
    name = "balk"
    description = "Like jot, but its first try may hang with its transaction open."
    timeout_seconds = 1.0

    def run(self, arguments: Hold, context: ToolContext) -> Outcome:
        outcome = super().run(arguments, context)
        act(self.name, arguments, context, once=True)
        return outcome
