"""The staff's pages: each one opens, at a cost that does not grow, shows no secret and lets nothing be changed."""

import json
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.db.models import Model
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from agents.budgets.models import Budget
from agents.engine import presence
from agents.live.stream import redis_client
from agents.models import AgentTask, DeviceToken, HealthReport, ModelCall, ModelConnection, UserAgent
from goals.models import Feed, FeedItem, Goal, Measurement, Notice, PushDevice, Receipt, Schedule, Target
from memory.admin_base import ReadOnlyAdmin
from memory.models import AgentHistory, AgentRun, Attachment, Document, Learning, Note, RunStatus, Skill, Thread
from tests.factories import (
    PASSWORD,
    AgentActionFactory,
    AgentHistoryFactory,
    AgentRunFactory,
    AgentTaskFactory,
    AttachmentFactory,
    BudgetFactory,
    DeviceTokenFactory,
    DocumentFactory,
    FeedItemFactory,
    GoalFactory,
    HealthReportFactory,
    HistoryEntryFactory,
    LearningFactory,
    McpServerFactory,
    MeasurementFactory,
    ModelCallFactory,
    ModelConnectionFactory,
    NoteFactory,
    PushDeviceFactory,
    ReceiptFactory,
    ScheduleFactory,
    SkillFactory,
    TargetFactory,
    ThreadFactory,
    UserAgentFactory,
    UserFactory,
    bearer,
)
from tools.mcp.models import McpServer
from tools.models import AgentAction

pytestmark = pytest.mark.django_db

MAKERS: dict[type[Model], Callable[[], Any]] = {
    AgentAction: AgentActionFactory,
    AgentHistory: AgentHistoryFactory,
    AgentRun: AgentRunFactory,
    AgentTask: AgentTaskFactory,
    Budget: BudgetFactory,
    Attachment: AttachmentFactory,
    Document: DocumentFactory,
    DeviceToken: DeviceTokenFactory,
    Feed: lambda: FeedItemFactory().feed,
    FeedItem: FeedItemFactory,
    Goal: GoalFactory,
    HealthReport: HealthReportFactory,
    Learning: LearningFactory,
    McpServer: McpServerFactory,
    Measurement: MeasurementFactory,
    ModelCall: ModelCallFactory,
    ModelConnection: ModelConnectionFactory,
    Note: NoteFactory,
    Notice: lambda: ReceiptFactory().notice,
    PushDevice: PushDeviceFactory,
    Receipt: ReceiptFactory,
    Skill: SkillFactory,
    Schedule: ScheduleFactory,
    Target: TargetFactory,
    Thread: ThreadFactory,
    User: UserFactory,
    UserAgent: UserAgentFactory,
}
OURS = [model for model, page in admin.site._registry.items() if isinstance(page, ReadOnlyAdmin)]
XSS = "<script>alert(1)</script><img src=x onerror=alert(1)>'\"</pre>"


@pytest.fixture
def staff() -> User:
    return UserFactory.create(staff=True)


@pytest.fixture
def desk(staff: User) -> Client:
    client = Client()
    client.force_login(staff)
    return client


def page_of(model: type[Model], kind: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.label_lower.replace('.', '_')}_{kind}", args=args)


def queries(client: Client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def test_every_page_of_ours_is_tried_here() -> None:
    assert {*OURS, User} == set(MAKERS)


@pytest.mark.parametrize("model", MAKERS, ids=lambda model: model.__name__)
def test_lists_open_and_cost_the_same_however_long(desk: Client, model: type[Model]) -> None:
    MAKERS[model]()
    path = page_of(model, "changelist")
    queries(desk, path)
    few = queries(desk, path)
    for _ in range(8):
        MAKERS[model]()
    assert queries(desk, path) == few


@pytest.mark.parametrize("model", MAKERS, ids=lambda model: model.__name__)
def test_lists_can_be_searched_and_filtered(desk: Client, model: type[Model]) -> None:
    MAKERS[model]()
    answer = desk.get(page_of(model, "changelist"), {"q": "something"})
    assert answer.status_code == 200


@pytest.mark.parametrize("model", MAKERS, ids=lambda model: model.__name__)
def test_single_pages_open(desk: Client, model: type[Model]) -> None:
    made = MAKERS[model]()
    answer = desk.get(page_of(model, "change", made.pk))
    assert answer.status_code == 200
    assert "style-src 'self';" in answer["Content-Security-Policy"]


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_nothing_is_added_changed_or_deleted(desk: Client, model: type[Model]) -> None:
    made = MAKERS[model]()
    before = model._default_manager.filter(pk=made.pk).values().get()
    fields = {field.name: "1" for field in model._meta.fields}
    assert desk.post(page_of(model, "change", made.pk), fields).status_code == 403
    assert desk.post(page_of(model, "delete", made.pk), {"post": "yes"}).status_code == 403
    assert desk.post(page_of(model, "add"), fields).status_code == 403
    assert model._default_manager.filter(pk=made.pk).values().get() == before


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_looking_is_written_down(desk: Client, staff: User, model: type[Model]) -> None:
    made = MAKERS[model]()
    desk.get(page_of(model, "change", made.pk))
    entry = LogEntry.objects.get()
    assert (entry.user, entry.object_id, entry.change_message) == (staff, str(made.pk), "Viewed")


def test_lists_do_not_show_what_was_learned_planned_or_measured(desk: Client) -> None:
    private = {
        Learning: "Learning 1",
        Schedule: "Look round",
        Measurement: "63.5",
        Target: "Weight",
        FeedItem: "Item 1",
        Notice: "Answer",
    }
    for model, words in private.items():
        MAKERS[model]()
        made = MAKERS[model]()
        assert words.split()[0] not in desk.get(page_of(model, "changelist")).text.partition('id="result_list"')[2]
        assert words.split()[-1] in desk.get(page_of(model, "change", made.pk)).text


@pytest.mark.parametrize("model", OURS, ids=lambda model: model.__name__)
def test_only_staff_may_look(model: type[Model]) -> None:
    made = MAKERS[model]()
    client = Client()
    client.force_login(UserFactory())
    for path in (page_of(model, "changelist"), page_of(model, "change", made.pk)):
        assert client.get(path).status_code == 302
    assert not LogEntry.objects.exists()


def test_a_transcript_shows_every_block_escaped(desk: Client) -> None:
    thread = ThreadFactory.create()
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": XSS},
        {"type": "thinking", "text": XSS, "signature": None},
        {"type": "tool_use", "id": XSS, "name": XSS, "arguments": {XSS: [XSS]}, "problem": None},
        {"type": "tool_result", "id": "c1", "content": '{"found": ["shoes"]}', "is_error": True},
        {"type": "from the future", "value": XSS},
    ]
    HistoryEntryFactory(thread=thread, role="assistant", blocks=blocks, run=AgentRunFactory(thread=thread))
    page = desk.get(page_of(Thread, "change", thread.pk)).content.decode()
    assert 'data-role="assistant"' in page
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&quot;found&quot;: [\n" in page
    assert "data-problem" in page


def test_a_long_transcript_shows_its_end_and_costs_no_more(desk: Client) -> None:
    thread = ThreadFactory.create()
    HistoryEntryFactory(thread=thread, seq=1)
    queries(desk, page_of(Thread, "change", thread.pk))
    few = queries(desk, page_of(Thread, "change", thread.pk))
    for seq in range(2, 352):
        HistoryEntryFactory(thread=thread, seq=seq)
    assert queries(desk, page_of(Thread, "change", thread.pk)) == few
    page = desk.get(page_of(Thread, "change", thread.pk)).content.decode()
    assert "51 earlier entries" in page
    assert "351 · user" in page


def test_the_whole_history_can_be_downloaded_and_that_is_written_down(desk: Client) -> None:
    thread = ThreadFactory.create()
    HistoryEntryFactory(thread=thread, seq=1)
    answer = desk.get(reverse("admin:memory_thread_history_json", args=[thread.pk]))
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer.json()[0]["blocks"] == [{"type": "text", "text": "hello"}]
    assert LogEntry.objects.get().change_message == "Downloaded the LLM history"


def test_entries_in_quarantine_are_marked_and_can_be_released_by_those_who_may(desk: Client, client: Client) -> None:
    thread = ThreadFactory.create()
    HistoryEntryFactory(thread=thread, seq=1, quarantine="short")
    page = desk.get(page_of(Thread, "change", thread.pk)).content.decode()
    assert "1 · user · quarantine: short" in page
    address = reverse("admin:memory_thread_release", args=[thread.pk])
    assert f'formaction="{address}"' in page
    assert desk.get(address).status_code == 405

    viewer = UserFactory.create(is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_thread"))
    client.force_login(viewer)
    assert client.post(address).status_code == 404
    assert thread.llm_history.exclude(quarantine="").exists()

    desk.post(address)
    assert not thread.llm_history.exclude(quarantine="").exists()
    assert LogEntry.objects.latest("pk").change_message == "Released 1 history entries from quarantine"
    assert "Release from quarantine" not in desk.get(page_of(Thread, "change", thread.pk)).content.decode()


def test_the_state_of_a_thread_at_work_is_shown(desk: Client, settings: Any) -> None:
    thread = ThreadFactory.create()
    silent = timezone.now() + timedelta(seconds=settings.WAYMARK_LEASE_SECONDS - 90)
    run = AgentRunFactory.create(
        thread=thread, status=RunStatus.RUNNING, fence=4, lease_until=silent, started_at=timezone.now()
    )
    thread.live_run = run.pk
    thread.save()
    page = desk.get(page_of(Thread, "change", thread.pk)).content.decode()
    assert "orchestrator running" in page
    assert re.search(r'class="wm-amber">\d+ s ago', page)


def test_a_run_is_stopped_from_the_list(desk: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[Any] = []
    monkeypatch.setattr("agents.admin.stop_run", stopped.append)
    live = AgentRunFactory.create(status=RunStatus.RUNNING)
    done = AgentRunFactory.create()
    choice = {"action": "stop", "_selected_action": [str(live.pk), str(done.pk)]}
    assert desk.post(page_of(AgentRun, "changelist"), choice).status_code == 302
    assert stopped == [live]
    assert LogEntry.objects.get().change_message == "Stopped"


def test_who_may_only_look_may_not_act() -> None:
    viewer = UserFactory.create(is_staff=True)
    viewer.user_permissions.add(*Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(viewer)
    device, run = DeviceTokenFactory.create(), AgentRunFactory.create(status=RunStatus.RUNNING)
    for action, made in (("revoke", device), ("stop", run)):
        path = page_of(type(made), "changelist")
        assert client.get(path).status_code == 200
        client.post(path, {"action": action, "_selected_action": [str(made.pk)]})
    assert DeviceToken.objects.filter(pk=device.pk).exists()
    assert AgentRun.objects.get(pk=run.pk).status == RunStatus.RUNNING


def test_a_device_is_revoked_from_the_list(desk: Client, client: Client) -> None:
    user = UserFactory.create()
    headers = bearer(user)
    device = DeviceToken.objects.get(user=user)
    desk.post(page_of(DeviceToken, "changelist"), {"action": "revoke", "_selected_action": [str(device.pk)]})
    assert client.get("/api/v1/goals", headers=headers).status_code == 401


def test_neither_keys_nor_digests_are_shown(desk: Client) -> None:
    made = ModelConnectionFactory.create(sealed_key="sealed-canary", key_hint="7890")
    page = desk.get(page_of(ModelConnection, "change", made.pk)).content.decode()
    assert "7890" in page
    assert "sealed-canary" not in page
    device = DeviceTokenFactory.create()
    assert bytes(device.digest).hex()[:8] not in desk.get(page_of(DeviceToken, "change", device.pk)).content.decode()
    assert "digest" not in desk.get(page_of(DeviceToken, "change", device.pk)).content.decode()


def test_costs_are_summed_by_day_and_model(desk: Client) -> None:
    run = AgentRunFactory.create()
    for cost in (Decimal("0.5"), Decimal("0.25"), None):
        ModelCallFactory(run=run, model="gpt-x", cost=cost, input_tokens=1000)
    ModelCallFactory(run=run, model="other", cost=Decimal(9))
    page = desk.get(page_of(ModelCall, "changelist")).content.decode()
    assert "$0.7500 + 1 unpriced" in page
    assert "3,000" in page
    searched = desk.get(page_of(ModelCall, "changelist"), {"q": "gpt-x"}).content.decode()
    assert "$9.0000" not in searched


def test_a_new_password_set_by_staff_signs_devices_out(desk: Client, client: Client) -> None:
    user = UserFactory.create()
    headers = bearer(user)
    path = reverse("admin:auth_user_password_change", args=[user.pk])
    new = "another long pass phrase"
    answer = desk.post(path, {"password1": new, "password2": new, "usable_password": "true"})
    assert answer.status_code == 302
    assert client.get("/api/v1/goals", headers=headers).status_code == 401


def test_a_new_password_of_ones_own_signs_devices_out(desk: Client, staff: User, client: Client) -> None:
    headers = bearer(staff)
    new = "another long pass phrase"
    passwords = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    assert desk.post(reverse("admin:password_change"), passwords).status_code == 302
    assert client.get("/api/v1/goals", headers=headers).status_code == 401


def test_the_index_shows_how_the_parts_are(desk: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run = AgentRunFactory.create(status=RunStatus.QUEUED)
    AgentRun.objects.filter(pk=run.pk).update(created_at=timezone.now() - timedelta(seconds=99))
    monkeypatch.setattr("agents.vitals.workers", lambda: 0)
    page = desk.get(reverse("admin:index")).content.decode()
    assert "none seen in the last minute" in page
    assert re.search(r"1 waiting, the oldest for (99|1\d\d) s", page)
    assert page.count('data-well="no"') == 2


def test_the_index_tells_of_mail_and_feeds_that_do_not_go_out(desk: Client, settings: Settings) -> None:
    settings.SENDS_MAIL = True
    ReceiptFactory(channel="mail", state="sent", at=timezone.now() - timedelta(minutes=5))
    ReceiptFactory(channel="mail", state="refused", detail="550 no such user")
    index = reverse("admin:index")
    assert "the last notice was sent" in desk.get(index).text
    ReceiptFactory(channel="mail", state="later", detail="535 wrong password")
    begun = timezone.now() - timedelta(hours=2)
    Feed.objects.filter(pk=FeedItemFactory().feed.pk).update(created_at=begun, written_at=None)
    page = desk.get(index).text
    assert "the last notice was not: 535 wrong password" in page
    assert "1 of the last day begun and not written, 0 written" in page


@pytest.mark.parametrize(
    ("chosen", "well", "told"),
    [
        ({}, "yes", "WAYMARK_SEARCH names nobody"),
        ({"WAYMARK_SEARCH": "brave"}, "no", "WAYMARK_BRAVE_KEY"),
        ({"WAYMARK_SEARCH": "brave", "WAYMARK_BRAVE_KEY": "canary"}, "yes", "by Brave Search"),
    ],
)
def test_the_index_says_who_searches_the_web_or_why_nobody_does(
    desk: Client, settings: Settings, chosen: dict[str, str], well: str, told: str
) -> None:
    for name, value in chosen.items():
        setattr(settings, name, value)
    page = desk.get(reverse("admin:index")).content.decode()
    assert f'<li data-well="{well}"><strong>Web search</strong> <span>{told}' in page
    assert "canary" not in page


def test_the_index_tells_why_commands_are_withheld(desk: Client) -> None:
    redis_client().delete(presence._commands_key())
    presence.tell_of_commands("")
    assert "the sandbox holds" in desk.get("/admin/").text
    presence.tell_of_commands("Commands are withheld: bwrap is not there.")
    assert "Commands are withheld: bwrap is not there." in desk.get("/admin/").text
    redis_client().delete(presence._commands_key())


def test_health_shows_the_last_report_of_each_check(desk: Client) -> None:
    now = timezone.now()
    HealthReportFactory(name="stuck_runs", found=3, examples=["run of yesterday"], at=now - timedelta(days=1))
    HealthReportFactory(name="stuck_runs", found=2, fixed=2, examples=["run of today"], at=now)
    HealthReportFactory(name="unanswered", error="OperationalError: no", examples=[], at=now)
    page = desk.get(page_of(HealthReport, "changelist")).content.decode()
    assert "run of today" in page
    assert "run of yesterday" not in page
    assert "OperationalError: no" in page


@pytest.mark.django_db(transaction=True)
def test_staff_look_for_trouble_now_and_put_it_right(desk: Client) -> None:
    redis_client().flushdb()  # other tests leave jobs there, of runs that are gone
    run = AgentRunFactory.create(status=RunStatus.RUNNING)
    Thread.objects.filter(pk=run.thread_id).update(live_run=run.pk)
    path = reverse("admin:agents_healthreport_run")
    assert desk.get(path).status_code == 405
    desk.post(path)
    report = HealthReport.objects.get(name="stuck_runs")
    assert (report.found, report.fixed, report.by_hand, report.examples) == (1, 0, True, [f"run {run.pk} (running)"])
    assert "1 found, 0 put right" in desk.get(page_of(HealthReport, "changelist")).content.decode()
    desk.post(path, {"fix": "1"})
    assert HealthReport.objects.filter(name="stuck_runs", found=1, fixed=1).exists()
    run.refresh_from_db()
    assert run.lease_until
    assert {entry.change_message for entry in LogEntry.objects.all()} == {"Looked", "Repaired"}


def test_only_who_may_change_runs_the_checks() -> None:
    viewer = UserFactory.create(is_staff=True)
    viewer.user_permissions.add(*Permission.objects.filter(codename__startswith="view_"))
    client = Client()
    client.force_login(viewer)
    assert "Look now" not in client.get(page_of(HealthReport, "changelist")).content.decode()
    assert client.post(reverse("admin:agents_healthreport_run"), {"fix": "1"}).status_code == 403
    assert not HealthReport.objects.exists()


def test_the_pages_of_rq_open_for_staff_alone(desk: Client, client: Client) -> None:
    paths = [reverse("django_rq:home"), reverse("django_rq:jobs", args=[0]), reverse("django_rq:workers", args=[0])]
    for path in paths:
        assert path.startswith("/admin/django-rq/")
        assert desk.get(path).status_code == 200
        assert client.get(path).status_code == 302


@pytest.mark.django_db(transaction=True)
def test_actions_are_filtered_and_searched_and_looking_for_words_is_written_down(desk: Client) -> None:
    done = AgentActionFactory.create(summary="Shoes", undo={"changes": [{"kind": "note"}]})
    failed = AgentActionFactory.create(status="error", error="Boots were not there.", tool="delete_note")
    person = AgentActionFactory.create(run=None, thread=done.thread, user=done.user, tool="undo_action")
    asked = {
        "": [done, failed, person],
        "state=undoable": [done],
        "state=failed": [failed],
        "by=person": [person],
        "tool=delete_note": [failed],
        f"q={failed.pk}": [failed],
        f"q={done.user.email}": [done, person],
        "q=boots were": [failed],
        "q=%00": [done, failed, person],
        "q=nowhere": [],
    }
    for query, expected in asked.items():
        page = desk.get(f"{page_of(AgentAction, 'changelist')}?{query}").content.decode()
        assert [each for each in (done, failed, person) if f"/{each.pk}/change/" in page] == expected, query
        assert "Boots were not there" not in page
        rows = async_to_sync(_read)(desk.get(f"{reverse('admin:tools_agentaction_json')}?{query}"))
        assert {row["id"] for row in json.loads(rows)} == {str(each.pk) for each in expected}, query
    written = set(LogEntry.objects.values_list("change_message", flat=True))
    assert {"Searched: boots were", "Exported as json: q=boots+were", "Exported as json: everything"} <= written


async def _read(answer: Any) -> bytes:
    return b"".join([piece async for piece in answer])


def test_only_who_may_look_at_actions_exports_them(client: Client) -> None:
    AgentActionFactory.create()
    client.force_login(UserFactory.create(is_staff=True))
    for form in ("csv", "json"):
        assert client.get(reverse(f"admin:tools_agentaction_{form}")).status_code == 403
    assert not LogEntry.objects.exists()
