"""Which addresses an agent may open: those that it was given (threat T10).

An address that a model makes up can carry away what it has read. One that stands in what the user wrote, or in what
came from outside, cannot: it was there before. What the model has written itself does not count, wherever it comes
back from: a note, an earlier session, a helper's report, the instructions that it gave to a helper.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import Final
from uuid import UUID

from django.apps import apps
from django.db.models import QuerySet
from django.db.models.fields.json import KT

from memory.models import Attachment, Source, Thread, ThreadMessage, Trigger
from tools.models import ActionStatus, AgentAction
from tools.registry import all_tools

ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`{}|\\^#]+", re.IGNORECASE)
BRACKETS: Final = re.compile(r"[()\[\]]")
STOPS: Final = ".,;:!?*~"
# Of an address that goes on, only the beginning would be meant. A stop at the end of a sentence does not go on.
GOES_ON: Final = r"(?![.,;:!?*'()\[\]~]*[a-zA-Z0-9/_\-&=+%@$])"
MOST: Final = 50
# Such as a key: longer than the names of things, and with figures in it, or than any word; or an address of somebody.
CODE: Final = re.compile(r"^(?=\S*\d)\S{12}|^[!-~]{30}|@")
MOST_DIGITS: Final = 12


def was_given(thread_id: UUID, address: str) -> bool:
    """Whether an address, without its fragment, stands exactly so in what the agent of a thread was given."""
    exactly = re.compile(re.escape(address) + GOES_ON)
    given = chain(
        _said(thread_id, address), _attached(thread_id, address), _come_back(thread_id, address), _about(thread_id)
    )
    return any(map(exactly.search, given)) or _handed_on(thread_id, address)


def codes_made_up(thread_id: UUID, words: str) -> bool:
    """Whether words hold a code (a key, a number, an address of somebody, or what was packed into signs) that the agent
    of a thread was not given by its user or from outside."""
    many = sum(map(str.isdigit, words)) > MOST_DIGITS
    codes = [word for word in words.split() if CODE.search(word) or (many and any(map(str.isdigit, word)))]
    return not all(was_given(thread_id, code) for code in codes)


def given_in(thread_id: UUID, text: str) -> tuple[str, ...]:
    """The addresses in a text of this thread's agent that it was given itself, and so may hand on (`MOST` at most)."""
    found = dict.fromkeys(chain.from_iterable(map(_readings, ADDRESS.findall(text))))
    return tuple(address for address in [*found][:MOST] if was_given(thread_id, address))


def _readings(found: str) -> Iterator[str]:
    """What stands after an address, or around it, may be a part of it."""
    yield found.rstrip(STOPS)
    yield found.rstrip(STOPS + ")]")
    yield BRACKETS.split(found)[0].rstrip(STOPS)


def _about(thread_id: UUID) -> Iterator[str]:
    """What the user wrote about what the agent is put to work on (`agents.agentable.Agentable.written`)."""
    for kind in Thread.objects.filter(pk=thread_id).values_list("kind", flat=True):
        for agentable in apps.get_model(kind)._default_manager.filter(thread=thread_id):
            yield agentable.written()


def typed(thread_id: UUID) -> QuerySet[ThreadMessage]:
    """What the user wrote: a decision quotes the call that it is about, an answer was picked of those that the agent
    wrote, what restarts a conversation repeats what was written, and what begins a task is its sender's."""
    said = ThreadMessage.objects.filter(thread=thread_id, source=Source.USER, run__isnull=False)
    return said.exclude(metadata__has_any_keys=["decision", "answers", "restarts"]).exclude(run__trigger=Trigger.TASK)


def _said(thread_id: UUID, address: str) -> Iterator[str]:
    return typed(thread_id).filter(content__contains=address).values_list("content", flat=True).iterator()


def _attached(thread_id: UUID, address: str) -> Iterator[str]:
    files = Attachment.objects.filter(thread=thread_id).annotate(words=KT("block__text"))
    return files.filter(words__contains=address).values_list("words", flat=True).iterator()


def _come_back(thread_id: UUID, address: str) -> Iterator[str]:
    foreign = [name for name, tool in all_tools().items() if tool.foreign]
    calls = AgentAction.objects.filter(thread=thread_id, tool__in=foreign, status=ActionStatus.DONE)
    return calls.filter(output__contains=address).order_by("-created_at").values_list("output", flat=True).iterator()


def _handed_on(thread_id: UUID, address: str) -> bool:
    """Whether whoever gave instructions here (the agent that sent this one off, the user of a schedule) was given the
    address, or is the user, and wrote it into them."""
    return ThreadMessage.objects.filter(thread=thread_id, metadata__addresses__contains=[address]).exists()
