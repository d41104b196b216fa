"""Runs that nobody will end, and jobs of runs that have ended."""

from functools import partial
from uuid import UUID

import django_rq
from django.conf import settings
from redis import RedisError
from rq.job import Job

from agents.engine import bell, journal
from agents.engine.health.finding import Finding
from agents.engine.health.watch import watched_for
from agents.live.announce import status_changed
from agents.live.events import Failed
from agents.live.stream import publish
from agents.models import AgentTask
from memory.models import AgentRun, RunStatus

STALE_TEXT = "I could not go on with this: no worker took it up for hours. You can try again."


def stuck_runs(limit: int) -> list[Finding]:
    """Runs whose lease does not end, and runs whose holder hangs: the next worker takes them up."""
    return [
        Finding(f"run {odd.run_id} ({odd.status})", partial(_release, odd.run_id)) for odd in journal.stuck_runs(limit)
    ]


def _release(run_id: UUID) -> bool:
    if not journal.release(run_id):
        return False
    bell.ring(run_id)
    return True


def stale_goals(limit: int) -> list[Finding]:
    """A goal's status is derived: it is working while a run is live. A run that gave no sign for hours is ended, so
    that the goal waits for its user, who is told. Assistants have no status, but the same cure."""
    silence = settings.WAYMARK_STALE_GOAL_HOURS * 3600
    if not watched_for(silence):
        return []
    stale = journal.stale_runs_of_others(AgentTask.kind(), silence, limit)
    return [Finding(f"run {odd.run_id} ({odd.status})", partial(abandon, odd.run_id, silence)) for odd in stale]


def abandon(run_id: UUID, silence: float) -> bool:
    """End a run that gave no sign for `silence` seconds. False: it did meanwhile."""
    ended = journal.abandon(run_id, silence, STALE_TEXT)
    if ended is None:
        return False
    failed = Failed(run=run_id, message=ended.message_id, text=STALE_TEXT, retryable=True)
    publish(ended.thread_id, ended.user_id, failed, status_changed(run_id, RunStatus.FAILED))
    bell.ring_next(ended.in_line)
    return True


def zombie_jobs(limit: int) -> list[Finding]:
    """Bells that wait in the queue for runs that are over. Without Redis there are none."""
    queue = django_rq.get_queue("default")
    try:
        jobs = [job for job in Job.fetch_many(queue.get_job_ids(0, limit), queue.connection) if job is not None]
    except RedisError:
        return []
    bells = [(job, str(job.args[0])) for job in jobs if job.func_name == bell.RUN]
    live = {
        str(pk) for pk in AgentRun.objects.live().filter(pk__in={run for _, run in bells}).values_list("pk", flat=True)
    }
    return [Finding(f"job of run {run}", partial(_cancel, job)) for job, run in bells if run not in live]


def _cancel(job: Job) -> bool:
    job.delete()
    return True
