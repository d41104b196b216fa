"""A conversation whose history the model's server refuses can go on from a summary of it (docs/reliability.md).

Summing up takes a model's time, so a job does it. The message is said again only once its session is archived: the
same bytes then never reach the server again.
"""

from uuid import UUID, uuid5

import structlog
from django.conf import settings
from django.db.models import Max

from agents.engine import archiving, bell
from agents.services import Refused, is_last_word, send_message
from memory.archive import Finish
from memory.degrade import HISTORY_REFUSED
from memory.models import AgentRun, ArchiveReason, MessageType, Source, ThreadMessage

log = structlog.get_logger(__name__)


def restart(run: AgentRun) -> None:
    """Have the session of a run that failed archived, and then said again what its user had said.

    Raises:
        Refused: the run did not fail for its history, something was said since, or no worker could be told.
    """
    _words(run)
    if not bell.ask_for_restart(run.pk):
        raise Refused("unavailable", "The workers cannot be reached; try again in a moment.")


def carry_out(run_id: UUID) -> None:
    """The job. A second one finds the session reserved or gone, and says nothing twice."""
    run = AgentRun.objects.select_related("thread__user").filter(pk=run_id).first()
    if run is None:
        return
    try:
        words = _words(run)
        if _archived(run.thread_id):
            send_message(run.thread, words, uuid5(run.pk, "restart"))
    except Refused as refused:
        log.warning("not started from the summary", run=str(run_id), why=refused.message)


def _archived(thread_id: UUID) -> bool:
    """A model that refuses the session may refuse to sum it up as well; the last try then asks none."""
    for _ in range(settings.WAYMARK_SUMMARY_TRIES + 1):
        done = archiving.archive_session(thread_id, ArchiveReason.BY_HAND, at_once=True)
        if done is not None:
            return done is Finish.DONE
    return False


def _words(run: AgentRun) -> str:
    """What the user has said since the agent's last answer.

    Raises:
        Refused: see `restart`.
    """
    error = ThreadMessage.objects.filter(run=run, source=Source.ERROR).order_by("-position").first()
    if run.reason != HISTORY_REFUSED or error is None or not is_last_word(error):
        raise Refused("not_refused", "Only a run whose history the model has just refused can start from the summary.")
    said = ThreadMessage.objects.filter(thread=run.thread_id, position__lt=error.position)
    answers = said.filter(source=Source.AGENT, message_type=MessageType.TEXT).exclude(metadata__has_key="interim")
    answered = answers.aggregate(last=Max("position"))["last"] or 0
    asked = said.filter(source=Source.USER, position__gt=answered).order_by("position")
    if not (words := "\n\n".join(asked.values_list("content", flat=True))):
        raise Refused("nothing_asked", "You have said nothing since the last answer.")
    return words
