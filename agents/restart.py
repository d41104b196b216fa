"""A conversation whose history the model's server refuses can go on from a summary of it (docs/reliability.md).

Summing up takes a model's time, so a job does it (`agents.engine.restarting`).
"""

from django.db.models import Max

from agents.engine import bell
from agents.refusals import Refused
from agents.services import is_last_word
from memory.degrade import HISTORY_REFUSED
from memory.metadata import MessageMetadata
from memory.models import AgentRun, MessageType, Source, ThreadMessage


def restart(run: AgentRun) -> None:
    """Have the session of a run that failed archived, and then said again what its user had said.

    Raises:
        Refused: the run did not fail for its history, something was said since, or no worker could be told.
    """
    words(run)
    if not bell.ask_for_restart(run.pk, run.thread.user_id):
        raise Refused("unavailable", "The workers cannot be reached; try again in a moment.")


def words(run: AgentRun) -> tuple[str, MessageMetadata]:
    """What the user has said since the agent's last answer, as one message. With a decision in it, it is one:
    that quotes what the agent has written, so nothing in it is the user's own (`tools.seen`).

    Raises:
        Refused: see `restart`.
    """
    error = ThreadMessage.objects.filter(run=run, source=Source.ERROR).order_by("-position").first()
    if run.reason != HISTORY_REFUSED or error is None or not is_last_word(error):
        raise Refused("not_refused", "Only a run whose history the model has just refused can start from the summary.")
    said = ThreadMessage.objects.filter(thread=run.thread_id, position__lt=error.position)
    spoken = said.filter(source=Source.AGENT, message_type=MessageType.TEXT)
    answers = spoken.exclude(metadata__has_any_keys=["interim", "task", "schedule"])
    answered = answers.aggregate(last=Max("position"))["last"] or 0
    asked = list(said.filter(source=Source.USER, position__gt=answered).order_by("position"))
    if not (text := "\n\n".join(map(_said, asked))):
        raise Refused("nothing_asked", "You have said nothing since the last answer.")
    decisions = [about for message in asked if (about := _metadata(message).decision)]
    return text, MessageMetadata(decision=decisions[-1] if decisions else None)


def _said(message: ThreadMessage) -> str:
    """What was attached is only named: it may be what the server refused."""
    attached = _metadata(message).attachments
    names = f"[Attached before: {', '.join(each.name for each in attached)}]" if attached else ""
    return "\n".join(filter(None, (message.content, names)))


def _metadata(message: ThreadMessage) -> MessageMetadata:
    return MessageMetadata.model_validate(message.metadata)
