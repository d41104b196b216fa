"""`/metrics` for Prometheus: the state of the whole, read from database and Redis when it is asked for."""

import secrets
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

import django_rq
import redis
from django.conf import settings
from django.db.models import Count, Max, Min, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from agents import vitals
from agents.engine import presence, sweeper
from agents.health_admin import latest
from agents.models import HealthReport, ModelCall
from goals.notice import Receipt
from goals.vitals import feeds_unwritten, schedules_overdue
from memory.ids import least_id
from memory.models import LIVE, AgentRun, RunStatus
from tools.mcp.models import McpServer
from tools.models import UNRESOLVED, AgentAction, Approval

DAY: Final = timedelta(days=1)


def metrics(request: HttpRequest) -> HttpResponse:
    """The figures as Prometheus reads them; there is no such page for strangers."""
    if not _is_allowed(request):
        raise Http404
    registry = CollectorRegistry()
    registry.register(Waymark())
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _is_allowed(request: HttpRequest) -> bool:
    """Only by the token. Where a request comes from says nothing: behind a proxy on this machine, which need not add
    any header, every stranger comes from this machine."""
    given, token = request.headers.get("Authorization", ""), settings.WAYMARK_METRICS_TOKEN
    return bool(token) and secrets.compare_digest(given.encode(), f"Bearer {token}".encode())


class Waymark(Collector):
    """A handful of cheap queries. What Redis knows is left out while it is away."""

    def collect(self) -> Iterator[Metric]:
        yield from _runs()
        yield from _failed()
        yield from _today()
        yield from _asked()
        yield from _stands_still()
        yield from _told()
        yield from _health()
        yield from _disks()
        try:
            yield from [*_redis()]
        except redis.RedisError:
            return

    def describe(self) -> list[Metric]:
        """Nothing is asked when the collector is registered."""
        return []


def _runs() -> Iterator[Metric]:
    found = AgentRun.objects.live().order_by().values("status").annotate(n=Count("pk"))
    counts: dict[str, int] = {row["status"]: row["n"] for row in found}
    runs = GaugeMetricFamily("waymark_runs", "Live runs by status.", labels=["status"])
    for status in LIVE:
        runs.add_metric([status], counts.get(status, 0))
    yield runs
    age = vitals.late_seconds()
    yield GaugeMetricFamily("waymark_oldest_queued_seconds", "For how long the oldest run could be taken.", value=age)
    now = timezone.now()
    due = AgentRun.objects.filter(status=RunStatus.RETRY_WAIT, due_at__lt=now).aggregate(oldest=Min("due_at"))["oldest"]
    late = (now - due).total_seconds() if due else 0
    yield GaugeMetricFamily("waymark_oldest_due_seconds", "For how long the oldest waiting run is due.", value=late)


def _failed() -> Iterator[Metric]:
    failed = GaugeMetricFamily("waymark_runs_failed_last_day", "Runs begun in 24 hours that failed.", labels=["reason"])
    found = AgentRun.objects.filter(pk__gte=least_id(timezone.now() - DAY), status=RunStatus.FAILED)
    for row in found.order_by().values("reason").annotate(n=Count("pk")):
        failed.add_metric([row["reason"]], row["n"])
    yield failed


def _asked() -> Iterator[Metric]:
    """What waits for a person."""
    waiting = Approval.objects.waiting().count()
    yield GaugeMetricFamily("waymark_approvals_waiting", "Calls that wait for approval.", value=waiting)
    unknown = AgentAction.objects.filter(UNRESOLVED).count()
    yield GaugeMetricFamily(
        "waymark_unknown_outcomes", "Calls of which nobody knows whether they happened.", value=unknown
    )


def _stands_still() -> Iterator[Metric]:
    servers = McpServer.objects.filter(enabled=True)
    mcp = GaugeMetricFamily("waymark_mcp_servers_away", "MCP servers that agents cannot use.", labels=["why"])
    mcp.add_metric(["changed"], servers.filter(changed=True).count())
    mcp.add_metric(["error"], servers.filter(changed=False).exclude(error="").count())
    yield mcp
    overdue = schedules_overdue()
    yield GaugeMetricFamily("waymark_schedules_overdue", "Schedules whose time is long over.", value=overdue)
    unwritten = feeds_unwritten()
    yield GaugeMetricFamily("waymark_feeds_unwritten", "Feeds of a day that were not written.", value=unwritten)


def _told() -> Iterator[Metric]:
    """What became of what users were told."""
    ways = GaugeMetricFamily(
        "waymark_notices_last_day", "Receipts of notices of 24 hours.", labels=["channel", "state"]
    )
    found = Receipt.objects.filter(pk__gte=least_id(timezone.now() - DAY)).order_by()
    for row in found.values("channel", "state").annotate(n=Count("pk")):
        ways.add_metric([row["channel"], row["state"]], row["n"])
    yield ways


def _today() -> Iterator[Metric]:
    """Gauges, because they begin anew at midnight (UTC)."""
    midnight = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    calls = ModelCall.objects.filter(created_at__gte=midnight).order_by()
    by_status = GaugeMetricFamily("waymark_model_calls_today", "Model calls since midnight.", labels=["status"])
    cost = 0.0
    for row in calls.values("status").annotate(n=Count("pk"), cost=Sum("cost")):
        by_status.add_metric([row["status"]], row["n"])
        cost += float(row["cost"] or 0)
    yield by_status
    yield GaugeMetricFamily("waymark_cost_dollars_today", "Known cost of model calls since midnight.", value=cost)


def _health() -> Iterator[Metric]:
    found = GaugeMetricFamily("waymark_health_found", "Findings of each check, last time.", labels=["check"])
    left = GaugeMetricFamily("waymark_health_unfixed", "Findings that were not put right.", labels=["check"])
    for _, report in latest():
        found.add_metric([report.name], report.found)
        left.add_metric([report.name], report.found - report.fixed)
    yield found
    yield left
    last = HealthReport.objects.filter(by_hand=False).aggregate(last=Max("at"))["last"]
    at = last.timestamp() if last else 0
    yield GaugeMetricFamily("waymark_health_looked_timestamp_seconds", "When the monitor looked last.", value=at)


def _disks() -> Iterator[Metric]:
    free = GaugeMetricFamily("waymark_disk_free_bytes", "Free on a disk that Waymark writes to.", labels=["folder"])
    for folder, bytes_free in vitals.disks():
        free.add_metric([str(folder)], bytes_free)
    yield free


def _redis() -> Iterator[Metric]:
    alive = presence.workers_alive(seconds=60)
    yield GaugeMetricFamily("waymark_workers", "Workers seen in the last minute.", value=alive)
    depth = django_rq.get_queue("default").count
    yield GaugeMetricFamily("waymark_queue_depth", "Bells that wait in Redis.", value=depth)
    yield CounterMetricFamily("waymark_lost_runs_rung", "Runs the sweep rang for.", value=sweeper.rung_so_far())
