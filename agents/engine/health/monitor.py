"""All checks, one after another, with a record of what they found."""

import contextlib
from collections.abc import Iterator, Sequence
from datetime import timedelta

import structlog
from django.conf import settings
from django.db import connection
from django.utils import timezone

from agents.engine import kept
from agents.engine.health import calls, files, money, runs, tasks, threads
from agents.engine.health.finding import Check, Finding
from agents.models import HealthReport
from memory.locks import HEALTH_LOCK

log = structlog.get_logger(__name__)

# How many findings a report names.
EXAMPLES = 5

# In this order: a counter must be right before anybody is woken by it.
CHECKS: Sequence[Check] = (
    Check("stuck_runs", "Runs that nobody will take up", runs.stuck_runs),
    Check("stale_goals", "Goals at work without a sign", runs.stale_goals),
    Check("ready_tasks", "Paused tasks that are ready", tasks.ready_tasks),
    Check("expired_tasks", "Tasks paused for too long", tasks.expired_tasks),
    Check("overdue_tasks", "Tasks without a report for long", tasks.overdue_tasks),
    Check("stale_tasks", "Active tasks nobody works on", tasks.stale_tasks),
    Check("old_tasks", "Old tasks that are over", tasks.old_tasks),
    Check("wrong_counters", "Threads that count wrongly", threads.wrong_counters),
    Check("unanswered", "Messages nobody was woken for", threads.unanswered),
    Check("wrong_budgets", "Budgets that hold wrongly", money.wrong_budgets),
    Check("lost_workspaces", "Files of agents that are gone", files.lost_workspaces),
    Check("staged_files", "Files that will not be written", files.staged_files),
    Check("unknown_calls", "Unknown outcomes to look up", calls.unknown_calls),
    Check("zombie_jobs", "RQ jobs of runs that are over", runs.zombie_jobs),
)


def run_if_due() -> None:
    """Examine, repair and forget when the last time by the clock is long enough ago; else that is one index look-up."""
    with _alone() as alone:
        if alone and _is_due():
            examine(fix=True)
            kept.forget()


def examine(*, fix: bool, by_hand: bool = False) -> list[HealthReport]:
    """Make every check; with `fix` put right what was found. A check that fails is reported and stops no other.

    Returns:
        One report a check, as recorded.
    """
    reports = [_report(check, fix=fix, by_hand=by_hand) for check in CHECKS]
    HealthReport.objects.bulk_create(reports)
    since = timezone.now() - timedelta(days=settings.WAYMARK_HEALTH_KEPT_DAYS)
    HealthReport.objects.exclude(at__range=(since, timezone.now())).delete()  # none of a clock that went ahead, either
    return reports


def _is_due() -> bool:
    """Half a tick early is better than one tick late."""
    last = HealthReport.objects.filter(by_hand=False).order_by("-at").first()
    pause = timedelta(seconds=settings.WAYMARK_HEALTH_MINUTES * 60 - settings.WAYMARK_TICK_SECONDS / 2)
    return last is None or not timezone.now() - pause < last.at <= timezone.now()


def _report(check: Check, *, fix: bool, by_hand: bool) -> HealthReport:
    report = HealthReport(name=check.name, at=timezone.now(), by_hand=by_hand)
    try:
        findings = check.find(settings.WAYMARK_HEALTH_BATCH)
        report.found = len(findings)
        report.examples = [finding.what for finding in findings[:EXAMPLES]]
        report.fixed = sum(_repaired(check, finding) for finding in findings) if fix else 0
    except Exception as problem:
        log.exception("health check failed", check=check.name)
        report.error = f"{type(problem).__name__}: {problem}"
    if report.found:
        log.warning("health", check=check.name, found=report.found, fixed=report.fixed, examples=report.examples)
    return report


def _repaired(check: Check, finding: Finding) -> bool:
    """Also true for what has come right by itself: it is in order now."""
    try:
        if not finding.repair():
            log.info("came right by itself", check=check.name, what=finding.what)
    except Exception:
        log.exception("repair failed", check=check.name, what=finding.what)
        return False
    return True


@contextlib.contextmanager
def _alone() -> Iterator[bool]:
    """Hold a lock of this connection's session, so that each repair can have its own transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [HEALTH_LOCK])
        row = cursor.fetchone()
    got = bool(row and row[0])
    try:
        yield got
    finally:
        if got:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s)", [HEALTH_LOCK])
