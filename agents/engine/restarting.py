"""Starting from the summary: the message is said again only once its session is archived, so that the same bytes never
reach the server again.
"""

from uuid import UUID, uuid5

import structlog
from django.conf import settings

from agents.engine import archiving
from agents.refusals import Refused
from agents.restart import words
from agents.services import send_message
from memory.archive import Outcome
from memory.models import AgentRun, ArchiveReason

log = structlog.get_logger(__name__)


def carry_out(run_id: UUID) -> None:
    """The job. A second one finds the session reserved or gone, and says nothing twice."""
    run = AgentRun.objects.select_related("thread__user").filter(pk=run_id).first()
    if run is None:
        return
    try:
        text, metadata = words(run)
        if _archived(run.thread_id):
            send_message(run.thread, text, uuid5(run.pk, "restart"), metadata=metadata)
    except Refused as refused:
        log.warning("not started from the summary", run=str(run_id), why=refused.message)


def _archived(thread_id: UUID) -> bool:
    """A model that refuses the session may refuse to sum it up as well; the last try then asks none."""
    for _ in range(settings.WAYMARK_SUMMARY_TRIES + 1):
        done = archiving.archive_session(thread_id, ArchiveReason.BY_HAND, at_once=True)
        if done is not None:
            return done is Outcome.DONE
    return False
