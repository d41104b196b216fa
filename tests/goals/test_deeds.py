"""What people do by hand to times, targets and measurements is on record, told to the agent, and can be undone
(missions A12, D7, D8 and H1)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from goals import measuring, schedules
from goals.deeds import MOST_UNDONE
from goals.models import Goal, Measurement, Schedule, Target
from memory.models import Thread
from tests.factories import GoalFactory, bearer
from tests.locks import waiting
from tests.processes import wait_until
from tools.models import AgentAction

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE = f"{timezone.now() + timedelta(days=90):%Y-%m-%d}"

type Press = Callable[..., AgentAction]
type State = list[tuple[object, ...]]


@pytest.fixture
def press(client: Client, goal: Goal) -> Press:
    """Press a button on a page; returns what is on record of it then, which Activity shows with a way back."""
    Schedule.objects.all().delete()
    client.force_login(goal.user)

    def press(address: str, **given: object) -> AgentAction:
        assert client.post(address, given).status_code == 302
        deed = AgentAction.objects.latest("created_at")
        assert f"/actions/{deed.pk}/undo" in client.get("/activity/").text
        return deed

    return press


def state() -> State:
    """All that somebody has set or measured."""
    rows: State = list(Schedule.objects.values_list("id", "rule", "intent", "paused", "only_if_changed"))
    rows += Schedule.objects.filter(kind="once").values_list("id", "next_at")
    rows += Target.objects.values_list("id", "name", "value", "unit", "deadline")
    rows += Measurement.objects.values_list("id", "value", "day", "note")
    return sorted(rows, key=str)


def test_each_deed_is_on_record_and_taken_back_and_done_again(press: Press, client: Client, goal: Goal) -> None:
    times, measured = f"/threads/{goal.thread_id}/schedule/add", f"/goals/{goal.pk}/measured/"
    states, deeds = [state()], []

    def do(address: str, **given: object) -> None:
        deeds.append(press(address, **given))
        states.append(state())
        assert states[-1] != states[-2]

    do(times, time="every Monday 8:00", intent="Sum up.", only_if_changed="on")
    (weekly,) = Schedule.objects.all()
    do(f"/schedules/{weekly.pk}/pause")
    do(f"/schedules/{weekly.pk}/resume")
    do(f"/schedules/{weekly.pk}/change", time="every Monday 8:00", intent="Sum up, shortly.")
    do(times, time="in 3 days")
    do(f"/schedules/{weekly.pk}/delete")
    do(f"{measured}target", name="Weight", value=60, unit="kg", deadline=DEADLINE)
    do(f"{measured}target", name="Weight", value=58, unit="kg", deadline=DEADLINE)
    do(f"{measured}add", value=63.5, day="2026-11-01", note="At home")
    do(f"{measured}import", lines="2026-11-02, 63\n2026-11-03, 62.5")
    do(f"{measured}{Measurement.objects.first().pk}/delete")  # type: ignore[union-attr]
    do(f"{measured}drop")
    assert [deed.summary for deed in deeds][:2] == ["every Monday 08:00: Sum up."] * 2
    assert deeds[9].summary == "63 on 2026-11-02 and 1 more"

    for deed, before in zip(reversed(deeds), reversed(states[:-1]), strict=True):
        client.post(f"/actions/{deed.pk}/undo")
        assert state() == before, deed.tool
    for deed, after in zip(deeds, states[1:], strict=True):
        client.post(f"/actions/{AgentAction.objects.get(undoes=deed).pk}/undo")
        assert state() == after, deed.tool
    goal.thread.refresh_from_db()
    assert "The user has paused a time of yours: every Monday 08:00: Sum up." in goal.thread.news


def test_a_time_is_changed_where_it_stands(press: Press, client: Client, goal: Goal) -> None:
    page = f"/threads/{goal.thread_id}/schedule/"
    press(f"{page}add", time="every Monday 8:00", intent="Sum up.")
    press(f"{page}add", time="in 3 days", intent="Ask.")
    weekly, once = Schedule.objects.order_by("created_at")
    assert 'value="every Monday 08:00"' in client.get(page).text
    wrong = client.post(f"/schedules/{weekly.pk}/change", {"time": "sometimes", "intent": "Add up."})
    assert (wrong.status_code, "not understood" in wrong.text, "Add up." in wrong.text) == (422, True, True)
    client.post(f"/schedules/{weekly.pk}/change", {"time": "every Friday 9:00", "intent": "", "only_if_changed": "on"})
    client.post(f"/schedules/{once.pk}/change", {"time": "", "intent": "Ask again."})
    Schedule.objects.filter(pk=weekly.pk).get(rule="0 9 * * 5", intent="", only_if_changed=True)
    Schedule.objects.filter(pk=once.pk).get(next_at=once.next_at, intent="Ask again.", only_if_changed=False)
    again = client.post(f"{page}add", {"time": "fridays 9"})
    assert (again.status_code, "set already" in again.text, Schedule.objects.count()) == (422, True, 2)
    theirs = schedules.add(GoalFactory.create().thread, "every day 8:00")
    assert client.post(f"/schedules/{theirs.pk}/change", {"time": "every day 9:00"}).status_code == 404


def test_what_recurs_can_be_undone_after_it_has_come_and_comes_again_when_it_is_put_back(
    press: Press, client: Client, goal: Goal
) -> None:
    press(f"/threads/{goal.thread_id}/schedule/add", time="every day 8:00")
    (daily,) = Schedule.objects.all()
    Schedule.objects.update(next_at=timezone.now() - timedelta(days=3))
    deleted = press(f"/schedules/{daily.pk}/delete")
    client.post(f"/actions/{deleted.pk}/undo")
    (daily,) = Schedule.objects.all()
    assert daily.next_at is not None
    assert daily.next_at > timezone.now()
    Schedule.objects.update(next_at=daily.next_at + timedelta(days=1), last_at=timezone.now())
    client.post(f"/actions/{AgentAction.objects.get(tool='set_time').pk}/undo")
    assert not Schedule.objects.exists()


def test_over_the_api_it_is_on_record_too_and_what_changes_nothing_is_not(goal: Goal, client: Client) -> None:
    Schedule.objects.all().delete()
    asked: dict[str, Any] = {"content_type": "application/json", "headers": bearer(goal.user)}
    path = f"/api/v1/goals/{goal.pk}"
    made = client.post(f"{path}/schedules", {"time": "every day 8:00"}, **asked).json()["id"]
    client.patch(f"/api/v1/schedules/{made}", {"intent": "Sum up."}, **asked)
    for _ in range(2):
        client.patch(f"/api/v1/schedules/{made}", {"paused": True}, **asked)
    client.delete(f"/api/v1/schedules/{made}", **asked)
    for _ in range(2):
        target = {"name": "Weight", "value": 60, "deadline": DEADLINE}
        assert client.put(f"{path}/target", target, **asked).status_code == 200
    measured = client.post(f"{path}/measurements", {"value": 63}, **asked).json()["id"]
    client.delete(f"/api/v1/measurements/{measured}", **asked)
    client.delete(f"{path}/target", **asked)
    assert list(AgentAction.objects.order_by("created_at").values_list("tool", flat=True)) == [
        *("set_time", "change_time", "pause_time", "delete_time"),
        *("set_target", "add_measurements", "delete_measurement", "drop_target"),
    ]


def test_an_import_that_is_too_long_to_be_undone_is_on_record(client: Client, goal: Goal) -> None:
    client.force_login(goal.user)
    lines = "\n".join(f"2026-01-01, {number}" for number in range(MOST_UNDONE + 1))
    client.post(f"/goals/{goal.pk}/measured/import", {"lines": lines})
    (deed,) = AgentAction.objects.all()
    assert deed.summary == f"0 on 2026-01-01 and {MOST_UNDONE} more"
    assert f"/actions/{deed.pk}/undo" not in client.get("/activity/").text


@pytest.mark.parametrize("what", ["schedules", "measurements"])
def test_whoever_waits_for_the_thread_holds_nothing_of_it_yet(what: str, client: Client, goal: Goal) -> None:
    """The one order of locks: the clock and an undo take the thread first, too."""
    client.force_login(goal.user)
    row: Schedule | Measurement
    if what == "schedules":
        row = schedules.add(goal.thread, "every day 8:00")
        address = f"/schedules/{row.pk}/pause"
    else:
        row = measuring.measure(goal.thread, 63.5)
        address = f"/goals/{goal.pk}/measured/{row.pk}/delete"

    def press() -> int:
        try:
            return client.post(address).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as elsewhere:
        with transaction.atomic():
            Thread.objects.select_for_update(no_key=True).get(pk=goal.thread_id)
            pressed = elsewhere.submit(press)
            wait_until(lambda: waiting() == 1)
            assert type(row)._default_manager.select_for_update(nowait=True).get(pk=row.pk) == row
        assert pressed.result() == 302
    assert AgentAction.objects.count() == 1


def test_two_who_measure_at_once_do_not_measure_too_much(goal: Goal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "MOST", 3)
    headers, address = bearer(goal.user), f"/api/v1/goals/{goal.pk}/measurements"
    measuring.take_in(goal.thread, "2026-11-01, 1\n2026-11-02, 2")

    def ask(n: int) -> int:
        try:
            body = {"value": n}
            return Client().post(address, body, content_type="application/json", headers=headers).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as both:
        with transaction.atomic():
            Thread.objects.select_for_update(no_key=True).get(pk=goal.thread_id)
            asked = [both.submit(ask, n) for n in range(2)]
            wait_until(lambda: waiting() == 2)
        assert sorted(each.result() for each in asked) == [201, 400]
    assert Measurement.objects.count() == 3


def test_a_target_is_set_and_dropped_by_many_at_once(goal: Goal) -> None:
    headers, address = bearer(goal.user), f"/api/v1/goals/{goal.pk}/target"
    body = {"name": "Weight", "value": 70, "deadline": DEADLINE}

    def ask(n: int) -> int:
        client = Client(raise_request_exception=False)
        try:
            if n % 3:
                return client.put(address, body, content_type="application/json", headers=headers).status_code
            return client.delete(address, headers=headers).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        statuses = set(pool.map(ask, range(90)))
    assert {200, 204} <= statuses <= {200, 204, 404}  # 404: it was set, and dropped before it was read
