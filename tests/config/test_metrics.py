"""/metrics: what stands there, and who may read it."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families
from pytest_django.fixtures import Settings
from redis import RedisError

from agents.engine import bell, presence, sweeper
from agents.live.stream import redis_client
from goals.feed import Feed
from goals.schedule import Schedule, ScheduleKind
from memory.ids import least_id
from memory.models import AgentRun, RunStatus
from tests.factories import (
    AgentActionFactory,
    AgentRunFactory,
    ApprovalFactory,
    FeedItemFactory,
    HealthReportFactory,
    McpServerFactory,
    ModelCallFactory,
    ReceiptFactory,
    ThreadFactory,
)
from tools.models import ActionStatus, Resolution

TOKEN = "long and random"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def token(settings: Settings) -> None:
    settings.WAYMARK_METRICS_TOKEN = TOKEN


def scrape(client: Client) -> dict[str, float]:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        ".".join([sample.name, *sample.labels.values()]): sample.value for each in families for sample in each.samples
    }


def test_the_state_of_the_whole_is_told(client: Client) -> None:
    redis_client().flushdb()
    queued, waits = AgentRunFactory(status=RunStatus.QUEUED), AgentRunFactory(status=RunStatus.RETRY_WAIT)
    past = timezone.now() - timedelta(minutes=5)
    AgentRun.objects.filter(pk=queued.pk).update(created_at=past)
    AgentRun.objects.filter(pk=waits.pk).update(due_at=past)
    ModelCallFactory(run=waits, cost=Decimal("0.5"))
    ModelCallFactory(run=waits, cost=None)
    HealthReportFactory(name="stuck_runs", found=3, fixed=1)
    presence.mark_alive()
    told = scrape(client)
    assert (told["waymark_runs.queued"], told["waymark_runs.running"], told["waymark_workers"]) == (1, 0, 1)
    assert told["waymark_oldest_queued_seconds"] >= 300
    assert told["waymark_oldest_due_seconds"] >= 300
    assert (told["waymark_model_calls_today.done"], told["waymark_cost_dollars_today"]) == (2, 0.5)
    assert (told["waymark_health_found.stuck_runs"], told["waymark_health_unfixed.stuck_runs"]) == (3, 2)
    bell.ring(queued.pk)
    sweeper.sweep()
    told = scrape(client)
    assert (told["waymark_lost_runs_rung_total"], told["waymark_queue_depth"]) == (2, 3)


def test_who_has_as_many_runs_at_work_as_may_be_is_not_late(client: Client, settings: Settings) -> None:
    settings.WAYMARK_MAX_RUNNING_PER_USER = 1
    until = timezone.now() + timedelta(minutes=1)
    busy = AgentRunFactory(status=RunStatus.RUNNING, lease_until=until).thread.user
    queued = AgentRunFactory(thread=ThreadFactory(user=busy), status=RunStatus.QUEUED)
    AgentRun.objects.filter(pk=queued.pk).update(created_at=timezone.now() - timedelta(minutes=5))
    assert scrape(client)["waymark_oldest_queued_seconds"] == 0


def test_what_fails_stands_still_or_waits_for_people_is_told(
    client: Client, settings: Settings, tmp_path: Path
) -> None:
    run = AgentRunFactory(status=RunStatus.FAILED, reason="loop")
    AgentRunFactory(status=RunStatus.FAILED, reason="loop", id=least_id(timezone.now() - timedelta(days=2)))
    AgentActionFactory(run=run, status=ActionStatus.UNKNOWN)
    AgentActionFactory(run=run, status=ActionStatus.UNKNOWN, resolution=Resolution.HAPPENED)
    ApprovalFactory()
    McpServerFactory(changed=True)
    McpServerFactory(error="It does not answer.")
    McpServerFactory(error="It does not answer.", enabled=False)
    past = timezone.now() - timedelta(minutes=10)
    for soon, paused in ((past, False), (past, True), (timezone.now(), False)):
        schedule = {"kind": ScheduleKind.ONCE, "next_at": soon, "paused": paused}
        Schedule.objects.create(thread=run.thread, user=run.thread.user, **schedule)
    for hours in (0, 2, 48):
        begun = timezone.now() - timedelta(hours=hours)
        Feed.objects.filter(pk=FeedItemFactory().feed.pk).update(created_at=begun, written_at=None)
    for _ in range(2):
        ReceiptFactory(channel="mail", state="later")
    ReceiptFactory(channel="mail", state="later", id=least_id(timezone.now() - timedelta(days=2)))
    report = HealthReportFactory(name="stuck_runs")
    HealthReportFactory(name="stuck_runs", at=timezone.now() + timedelta(hours=1), by_hand=True)
    settings.DATA_DIR = tmp_path
    told = scrape(client)
    assert told["waymark_runs_failed_last_day.loop"] == 1
    assert (told["waymark_unknown_outcomes"], told["waymark_approvals_waiting"]) == (1, 1)
    assert (told["waymark_mcp_servers_away.changed"], told["waymark_mcp_servers_away.error"]) == (1, 1)
    assert told["waymark_schedules_overdue"] == 1
    assert told["waymark_health_looked_timestamp_seconds"] == pytest.approx(report.at.timestamp())
    assert (told["waymark_feeds_unwritten"], told["waymark_notices_last_day.mail.later"]) == (1, 2)
    assert any(name.startswith("waymark_disk_free_bytes./") and free > 0 for name, free in told.items())


def test_without_redis_the_rest_is_told(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(seconds: float) -> int:
        raise RedisError

    monkeypatch.setattr(presence, "workers_alive", away)
    told = scrape(client)
    assert "waymark_runs.queued" in told
    assert "waymark_workers" not in told


@pytest.mark.parametrize("name", ["", "X-Forwarded-For", "X-Real-IP", "X-Forwarded-Host", "CF-Connecting-IP"])
@pytest.mark.parametrize("value", ["", "Bearer ", "Bearer wrong ü"])
@pytest.mark.parametrize("expected", [TOKEN, ""])
def test_strangers_find_no_such_page(client: Client, settings: Settings, name: str, value: str, expected: str) -> None:
    """Nor does anybody on this machine: through a proxy that adds nothing, everybody is."""
    settings.WAYMARK_METRICS_TOKEN = expected
    headers = {"Authorization": value} | ({name: "203.0.113.7"} if name else {})
    assert client.get("/metrics", headers=headers, REMOTE_ADDR="127.0.0.1").status_code == 404


def test_only_the_token_counts(client: Client) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/metrics", headers=headers, REMOTE_ADDR="203.0.113.7").status_code == 200
