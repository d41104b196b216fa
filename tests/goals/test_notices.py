"""What a user is told where they do not look: each thing once, with a receipt, and climbing (mission H10)."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core import mail
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from structlog.testing import capture_logs

from agents.services import assistant_of
from goals import delivery, feeds, notice_mail, push
from goals.models import Feed, Goal, Notice, NoticeChoice, PushDevice, Receipt
from goals.notice import ReceiptState
from goals.notice_feed import told_by_feed
from goals.sending import Outcome
from memory.models import AgentRun
from tests.factories import (
    AgentActionFactory,
    AgentRunFactory,
    AgentTaskFactory,
    ApprovalFactory,
    GoalFactory,
    NoticeFactory,
    ThreadMessageFactory,
    UserFactory,
)
from tests.push_service import BrowserOfSomebody, PushService, push_service
from tests.rewriting import rewriting
from tools.models import Approval, ApprovalState

pytestmark = pytest.mark.django_db(transaction=True)

type Later = Callable[..., None]
MINUTE = timedelta(minutes=1)


@pytest.fixture
def goal(user: User) -> Goal:
    goal: Goal = GoalFactory(user=user, title="Vienna half marathon")
    return goal


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Later:
    """Let time pass, then let the clock tick."""
    now = [datetime.now(UTC)]
    monkeypatch.setattr(timezone, "now", lambda: now[0])

    def pass_and_tick(minutes: float = 0, *, tick: bool = True) -> None:
        now[0] += minutes * MINUTE
        if tick:
            delivery.deliver()

    return pass_and_tick


@pytest.fixture
def service(settings: Settings) -> Iterator[PushService]:
    with push_service() as service:
        settings.WAYMARK_FETCH_PRIVATE = [service.place]
        yield service


@pytest.fixture
def browser(service: PushService, user: User) -> BrowserOfSomebody:
    """One that is told."""
    browser = service.browser(push.public_key())
    push.register(user, browser.subscription, "Firefox on Linux")
    return browser


@pytest.fixture
def letters(settings: Settings) -> list[Any]:
    """The mails that were sent."""
    settings.SENDS_MAIL = True
    settings.WAYMARK_SITE = "https://waymark.example"
    return mail.outbox


def finished(goal: Goal, text: str = "The plan respects your knee. Three days of rest.", **fields: Any) -> AgentRun:
    run: AgentRun = AgentRunFactory(thread=goal.thread, status="succeeded", finished_at=timezone.now(), **fields)
    ThreadMessageFactory(thread=goal.thread, run=run, source="agent", content=text)
    return run


def failed(goal: Goal, error: str = "The model gave an empty answer.") -> AgentRun:
    run: AgentRun = AgentRunFactory(thread=goal.thread, status="failed", error=error, finished_at=timezone.now())
    return run


def asks(goal: Goal) -> Approval:
    approval: Approval = ApprovalFactory(action__run__thread=goal.thread)
    return approval


def receipts(**wanted: Any) -> list[tuple[str, str]]:
    return [(each.channel, each.state) for each in Receipt.objects.filter(**wanted).order_by("created_at")]


def kinds() -> list[tuple[str, str]]:
    return [*Notice.objects.order_by("at").values_list("kind", "said")]


def test_three_things_are_told_and_nothing_else(goal: Goal, later: Later) -> None:
    asks(goal)
    failed(goal)
    finished(goal)
    AgentActionFactory(run__thread=goal.thread, status="unknown", finished_at=timezone.now())
    AgentRunFactory(thread=GoalFactory(user=goal.user).thread, status="waiting_budget", finished_at=None)
    nothing = GoalFactory(user=goal.user)
    AgentRunFactory(
        thread=nothing.thread, status="succeeded", finished_at=timezone.now(), context_type="agent_check_in"
    )
    AgentRunFactory(thread=nothing.thread, status="cancelled", reason="stopped", finished_at=timezone.now())
    AgentRunFactory(thread=nothing.thread, status="retry_wait", finished_at=None)
    feed = AgentRunFactory(
        thread=assistant_of(goal.user).thread,
        status="failed",
        context_type="feed_generation",
        finished_at=timezone.now(),
    )
    helper = AgentTaskFactory(parent=goal.thread)
    AgentRunFactory(thread=helper.thread, status="failed", error="Broken.", finished_at=timezone.now())
    later()
    later(1)
    told = [kind for kind, _said in kinds()]
    assert sorted(told) == ["failed", "finished", "waiting", "waiting", "waiting"]
    assert ("finished", "The plan respects your knee") in kinds()
    assert not Notice.objects.filter(subject=feed.pk).exists()


def test_a_run_that_waits_for_its_budget_again_is_told_again_but_not_for_every_look(goal: Goal, later: Later) -> None:
    run = AgentRunFactory(thread=goal.thread, status="waiting_budget", finished_at=None, step=3)
    later()
    AgentRun.objects.update(status="running")
    later(1)
    AgentRun.objects.update(status="waiting_budget")
    later(1)
    assert Notice.objects.get().settled_at is not None
    AgentRun.objects.update(step=5)
    later(1)
    assert {*Notice.objects.values_list("run", "kind")} == {(run.pk, "waiting")}
    assert Notice.objects.open().count() == 1
    assert Notice.objects.count() == 2


def test_what_a_helper_asks_is_told_of_who_has_sent_it(goal: Goal, later: Later) -> None:
    helper = AgentTaskFactory(parent=goal.thread)
    ApprovalFactory(action__run__thread=helper.thread)
    later()
    assert Notice.objects.get().thread_id == goal.thread_id


def test_it_climbs_from_the_browser_to_mail_to_the_feed(
    goal: Goal, browser: BrowserOfSomebody, letters: list[Any], later: Later
) -> None:
    finished(goal)
    later()
    assert browser.shown == []
    later(1)
    [shown] = browser.shown
    notice = Notice.objects.get()
    assert shown == {
        "id": str(notice.pk),
        "title": "Finished: Vienna half marathon",
        "body": "The plan respects your knee",
        "url": f"/notices/{notice.pk}/",
    }
    later(14)
    assert letters == []
    later(1)
    [letter] = letters
    assert letter.to == [goal.user.email]
    assert letter.subject == "Finished: Vienna half marathon"
    assert f"https://waymark.example/notices/{notice.pk}/" in letter.body
    [(html, kind)] = letter.alternatives
    assert kind == "text/html"
    assert f'href="https://waymark.example/notices/{notice.pk}/"' in html
    later(1)
    assert receipts() == [("push", "sent"), ("mail", "sent")]
    feed = feeds.begin(assistant_of(goal.user).thread, timezone.now())
    assert feed is not None
    assert "has not looked yet; say it again:\nFinished: Vienna half marathon. The plan" in feeds.material(feed)
    told_by_feed(goal.user)
    later(60)
    assert receipts() == [("push", "sent"), ("mail", "sent"), ("feed", "sent")]
    assert (len(browser.shown), len(letters)) == (1, 1)


def test_what_was_seen_meanwhile_is_not_sent(goal: Goal, browser: BrowserOfSomebody, later: Later) -> None:
    client = Client()
    client.force_login(goal.user)
    finished(goal)
    later()
    later(0.5, tick=False)
    assert client.get(f"/goals/{goal.pk}/").status_code == 200
    later(5)
    finished(goal, "The shoes are here. Two pairs.")
    later(0.5)
    client.get("/notes/")
    client.get("/", headers={"HX-Request": "true"})  # a page that brings itself up to date
    client.get("/", headers={"Sec-Purpose": "prefetch;prerender"})  # a page that may be opened
    client.get("/approvals/")  # shows what waits, not this
    later(1)
    assert [each["body"] for each in browser.shown] == ["The shoes are here"]
    assert Notice.objects.exclude(seen_at=None).count() == 1


def test_a_page_that_stands_open_is_looked_at_while_it_says_so(
    goal: Goal, browser: BrowserOfSomebody, later: Later
) -> None:
    client = Client()
    client.force_login(goal.user)
    client.get(f"/goals/{goal.pk}/")
    later(2, tick=False)
    finished(goal)
    failed(other := GoalFactory(user=goal.user, title="Graz"))
    later(0.5)
    news = client.post("/looking/", {"path": f"/goals/{goal.pk}/"}).json()
    [only] = news["notices"]
    assert only["text"] == "Failed: Graz. The model gave an empty answer"
    later(1)
    assert [each["title"] for each in browser.shown] == ["Failed: Graz"]
    assert client.get(only["url"])["Location"].startswith(f"/goals/{other.pk}/")
    assert client.post("/looking/", {"path": "/nowhere-at-all/"}).status_code == 404


@pytest.mark.parametrize(("place", "stands"), [("/goals/{}/", 1), ("/approvals/", 1), ("/", 0), ("/notes/", 2)])
def test_what_comes_about_while_a_page_says_so_is_no_news_where_it_stands(goal: Goal, place: str, stands: int) -> None:
    """It is found after the page was noted as looked at, and before it is told what has come up."""
    client = Client()
    client.force_login(goal.user)
    a_moment_later = timezone.now() + MINUTE
    NoticeFactory(user=goal.user, thread=goal.thread, kind="finished", at=a_moment_later)
    other: Goal = GoalFactory(user=goal.user, title="Graz")
    NoticeFactory(user=goal.user, thread=other.thread, kind="waiting", at=a_moment_later, subject=asks(other).pk)
    news = client.post("/looking/", {"path": place.format(goal.pk)}).json()
    assert len(news["notices"]) == stands


def test_what_was_decided_meanwhile_is_not_sent(
    goal: Goal, browser: BrowserOfSomebody, letters: list[Any], later: Later
) -> None:
    approval = asks(goal)
    later()
    Approval.objects.filter(pk=approval.pk).update(state=ApprovalState.REJECTED, decided_at=timezone.now())
    later(30)
    assert (browser.shown, letters) == ([], [])
    assert Notice.objects.get().settled_at is not None


def test_home_and_the_inbox_show_what_waits(goal: Goal, browser: BrowserOfSomebody, later: Later) -> None:
    client = Client()
    client.force_login(goal.user)
    client.post("/welcome/skip/")
    for address in ("/approvals/", "/"):
        asks(goal)
        later(0.1)
        client.get(address)
        later(5)
    assert browser.shown == []


def test_the_inbox_does_not_show_what_an_agent_has_asked_or_what_waits_for_money(
    goal: Goal, browser: BrowserOfSomebody, later: Later
) -> None:
    client = Client()
    client.force_login(goal.user)
    AgentRunFactory(thread=goal.thread, status="waiting_budget", finished_at=None, step=3)
    other: Goal = GoalFactory(user=goal.user, title="Graz")
    run = AgentRunFactory(thread=other.thread, status="succeeded", finished_at=timezone.now())
    ThreadMessageFactory(thread=other.thread, run=run, source="agent", content="Which day?", metadata={"asks": []})
    later(0.1)
    client.get("/approvals/")
    news = client.post("/looking/", {"path": "/approvals/"}).json()
    later(2)
    told = sorted(each["body"] for each in browser.shown)
    assert told == ["It waits for its budget.", "Which day?"]
    assert len(news["notices"]) == 2


def test_quiet_hours_hold_everything_back_until_they_end(
    goal: Goal, browser: BrowserOfSomebody, letters: list[Any], later: Later
) -> None:
    assistant = assistant_of(goal.user)
    now = timezone.now()
    assistant.quiet_from = (now - MINUTE).time()
    assistant.quiet_to = (now + 60 * MINUTE).time()
    assistant.save()
    finished(goal)
    seen = failed(goal)
    later()
    for _tick in range(5):
        later(10)
    assert (browser.shown, letters, receipts()) == ([], [], [])
    Notice.objects.filter(subject=seen.pk).update(seen_at=timezone.now())
    later(11)
    assert [each["title"] for each in browser.shown] == ["Finished: Vienna half marathon"]
    assert letters == []  # that comes a quarter of an hour later
    later(15)
    assert len(letters) == 1


def test_what_has_piled_up_is_told_by_one_push(
    goal: Goal, service: PushService, letters: list[Any], later: Later, client: Client
) -> None:
    client.force_login(goal.user)
    browser = service.browser(push.public_key())
    client.post("/settings/notices/devices/", {"subscription": browser.subscription})
    later(1, tick=False)
    for n in range(3):
        finished(goal, f"Answer number {n}. It is good.")
    failed(GoalFactory(user=goal.user, title="Graz"))
    asks(GoalFactory(user=goal.user, title="A trip"))
    assistant = assistant_of(goal.user)
    assistant.quiet_from, assistant.quiet_to = timezone.now().time(), (timezone.now() + 9 * MINUTE).time()
    assistant.save()
    later(5)
    assert browser.shown == []
    later(5)
    [shown] = browser.shown
    assert shown["title"] == "1 waits for you, 1 failed, 3 finished"
    waits, graz, first, more = shown["body"].splitlines()
    assert waits.startswith("A trip: ")
    assert graz == "Graz: The model gave an empty answer"
    assert (first, more) == ("Vienna half marathon: Answer number 0", "and 2 more")
    assert shown["url"] == "/"
    assert browser.headers[0]["Urgency"] == "high"
    assert receipts() == [("push", "sent")] * 5
    other = NoticeFactory(user=goal.user, thread=goal.thread, at=timezone.now())
    later(1)
    assert len(browser.shown) == 2
    assert client.post(f"/notices/{shown['id']}/shown").status_code == 204
    assert receipts() == [*[("push", "shown")] * 5, ("push", "sent")]
    assert other.receipts.get().state == "sent"
    later(15)
    assert (len(browser.shown), len(letters)) == (2, 1)
    assert receipts(channel="mail") == [("mail", "sent")] * 6


def test_one_push_that_tells_of_several_leads_to_where_all_of_them_are_seen(
    goal: Goal, browser: BrowserOfSomebody, later: Later, client: Client
) -> None:
    client.force_login(goal.user)
    other: Goal = GoalFactory(user=goal.user)
    for make, goals, place in (
        (asks, [goal, other], "/approvals/"),
        (finished, [goal], f"/goals/{goal.pk}/"),
        (finished, [goal, other], "/"),
    ):
        for n in range(4):
            make(goals[n % len(goals)])
        later(1)
        later(1)
        assert browser.shown[-1]["url"] == place
        client.post("/looking/", {"path": place})
        assert not Notice.objects.open().exists()
        later(0.1)
    assert len(browser.shown) == 3


@pytest.mark.parametrize(("number", "pushes"), [(3, 3), (12, 1)])
def test_many_look_at_the_clock_at_once_and_each_is_sent_once(
    number: int, pushes: int, goal: Goal, browser: BrowserOfSomebody, letters: list[Any], later: Later
) -> None:
    for n in range(number):
        finished(goal, f"Answer number {n}. It is good.")
    later(0.5)

    def look(_n: int) -> None:
        try:
            delivery.deliver()
        finally:
            connection.close()

    for minutes in (1, 16):
        later(minutes, tick=False)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(look, range(4)))
    assert len({shown["id"] for shown in browser.shown}) == len(browser.shown) == pushes
    assert receipts(channel="push") == [("push", "sent")] * number
    links = [line for letter in letters for line in letter.body.splitlines() if "/notices/0" in line]
    assert len({*links}) == len(links) == number


def test_whoever_finds_another_at_it_leaves_all_of_it_to_them(
    goal: Goal, browser: BrowserOfSomebody, letters: list[Any], later: Later
) -> None:
    for n in range(12):
        finished(goal, f"Answer number {n}. It is good.")
    later(0.5)

    def tick() -> None:
        try:
            later(1)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as other, transaction.atomic():
        PushDevice.objects.select_for_update().get()
        other.submit(tick).result()
        assert receipts() == []
    later()
    assert len(browser.shown) == 1
    later(14)
    with ThreadPoolExecutor(1) as other, transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=goal.user.pk)
        other.submit(tick).result()
        assert letters == []
    later()
    assert len(letters) == 1


def test_a_mail_server_that_is_down_is_asked_once_a_tick_and_the_log_says_so(
    letters: list[Any], later: Later, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        finished(GoalFactory())
    asked: list[User] = []

    def down(user: User, notices: Sequence[Notice]) -> Outcome:
        asked.append(user)
        return Outcome(ReceiptState.LATER, "535 wrong password", is_down=True)

    with monkeypatch.context() as patch, capture_logs() as logs:
        patch.setattr(notice_mail, "send", down)
        later(16)
        assert (len(asked), receipts()) == (1, [("mail", "later")])
        later()
    assert len({user.pk for user in asked}) == len(asked) == 2
    assert {"log_level": "warning", "channel": "mail", "detail": "535 wrong password"}.items() <= logs[0].items()
    later(1)
    assert len(letters) == 3


def test_a_push_service_that_is_busy_is_left_alone_and_then_told_of_all_that_waited(
    goal: Goal, browser: BrowserOfSomebody, service: PushService, later: Later
) -> None:
    for n in range(3):
        finished(goal, f"Answer number {n}. It is good.")
    service.answers = [429, 503]
    later(2)
    assert (service.answers, receipts()) == ([503], [("push", "later")])
    failed(goal)
    later(0.9)
    assert len(service.answers) == 1
    later(0.2)
    assert (service.answers, receipts()) == ([], [("push", "later")] * 4)
    later(1)
    assert browser.shown == []
    later(1)
    assert [each["title"] for each in browser.shown] == ["1 failed, 3 finished"]
    assert receipts() == [("push", "sent")] * 4


def test_an_upgrade_sends_nobody_mail_about_what_came_before(goal: Goal, letters: list[Any], later: Later) -> None:
    assistant_of(goal.user)
    finished(goal)
    later(1, tick=False)
    import_module("goals.migrations.0012_seen_before").see(apps, None)
    later(16)
    assert letters == []
    finished(goal)
    later(16)
    assert len(letters) == 1


def test_what_is_long_over_is_forgotten_but_not_what_waits(goal: Goal, letters: list[Any], later: Later) -> None:
    finished(goal)
    asks(goal)
    later(16)
    later(89 * 24 * 60)
    assert len(kinds()) == 2
    later(2 * 24 * 60)
    later()
    assert [kind for kind, _said in kinds()] == ["waiting"]
    assert (receipts(), len(letters)) == ([("mail", "sent")], 1)


@pytest.mark.parametrize("moment", ["before it sends", "after it has sent"])
def test_a_worker_that_dies_between_sends_nothing_twice_and_it_climbs(
    moment: str,
    goal: Goal,
    browser: BrowserOfSomebody,
    letters: list[Any],
    later: Later,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send = push.send

    def die(*given: Any) -> None:
        if moment == "after it has sent":
            send(*given)
        raise KeyboardInterrupt

    finished(goal)
    later()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(push, "send", die)
        later(1)
    assert receipts() == [("push", "reserved")]
    later(1)
    later(6)
    assert receipts() == [("push", "unknown")]
    assert len(browser.shown) == (moment == "after it has sent")
    later(10)
    assert receipts() == [("push", "unknown"), ("mail", "sent")]
    assert len(letters) == 1


def test_nobody_who_was_shut_out_is_told_and_nobody_of_what_they_do_not_want(
    goal: Goal, browser: BrowserOfSomebody, letters: list[Any], later: Later
) -> None:
    NoticeChoice.objects.create(user=goal.user, finished=False, mail=False)
    stranger = GoalFactory(user=UserFactory(is_active=False))
    finished(goal)
    failed(goal)
    failed(stranger)
    later()
    later(1)
    later(20)
    assert [each["title"] for each in browser.shown] == ["Failed: Vienna half marathon"]
    assert letters == []
    assert not Notice.objects.filter(user=stranger.user).exists()


def test_failures_that_go_on_are_told_once_until_they_are_seen(
    goal: Goal, browser: BrowserOfSomebody, later: Later
) -> None:
    failed(goal)
    later()
    later(2)
    failed(goal)
    later(2)
    assert len(browser.shown) == 1
    Notice.objects.update(seen_at=timezone.now())
    failed(goal)
    later(0.1)
    later(2)
    assert len(browser.shown) == 2


def test_a_failure_before_the_one_that_was_told_is_none_to_tell_later(
    goal: Goal, browser: BrowserOfSomebody, later: Later, client: Client
) -> None:
    client.force_login(goal.user)
    failed(goal, "The model is busy.")
    later(0.1, tick=False)
    failed(goal)
    later()
    later(2)
    client.get(browser.shown[0]["url"])
    later(0.1)
    later(2)
    assert [each["body"] for each in browser.shown] == ["The model gave an empty answer"]


def test_several_come_in_one_mail_which_says_how_to_end_that(
    goal: Goal, letters: list[Any], later: Later, client: Client
) -> None:
    finished(goal, "<b>Bold</b> & brave \u202egnp.exe. More.")
    failed(goal)
    later()
    later(15)
    [letter] = letters
    assert letter.subject.endswith("and 1 more")
    assert "\u202e" not in letter.body
    assert "<b>Bold" not in letter.alternatives[0][0]
    off = letter.extra_headers["List-Unsubscribe"].strip("<>")
    assert letter.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert off in letter.body
    strict = Client(enforce_csrf_checks=True)
    path = off.removeprefix("https://waymark.example")
    assert "No more of these mails" in strict.get(path).content.decode()
    assert NoticeChoice.objects.count() == 0  # whoever follows links to look at them changes nothing
    assert strict.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    assert NoticeChoice.objects.get(user=goal.user).mail is False
    assert strict.get(path[:-3] + "x/").status_code == 404
    finished(goal, "Another one.")
    later()
    later(20)
    assert len(letters) == 1


def test_a_link_leads_there_and_only_its_user(goal: Goal, later: Later, client: Client) -> None:
    run = finished(goal)
    approval = asks(goal)
    later()
    notice = Notice.objects.get(subject=run.pk)
    client.force_login(UserFactory())
    assert client.get(f"/notices/{notice.pk}/").status_code == 404
    assert Notice.objects.get(pk=notice.pk).seen_at is None
    client.force_login(goal.user)
    assert client.get(f"/notices/{notice.pk}/")["Location"].startswith(f"/goals/{goal.pk}/")
    assert Notice.objects.get(pk=notice.pk).seen_at is not None
    waiting = Notice.objects.get(subject=approval.pk)
    assert client.get(f"/notices/{waiting.pk}/")["Location"] == f"/approvals/#card-{approval.pk}"


def test_an_agent_that_is_gone_keeps_nothing_else_untold(
    goal: Goal, browser: BrowserOfSomebody, later: Later, client: Client
) -> None:
    client.force_login(goal.user)
    gone = failed(GoalFactory(user=goal.user))
    Goal.objects.filter(thread=gone.thread).delete()
    finished(goal)
    later(0.5)
    assert len(client.post("/looking/", {"path": "/notes/"}).json()["notices"]) == 2
    later(1)
    told = sorted(each["title"] for each in browser.shown)
    assert told == ["Failed: A deleted agent", "Finished: Vienna half marathon"]
    assert "A deleted agent" in client.get("/settings/notices/").content.decode()
    there = client.get(f"/notices/{Notice.objects.get(subject=gone.pk).pk}/")
    assert there["Location"].startswith("/jobs/")


def test_what_is_long_past_is_not_told(goal: Goal, letters: list[Any], later: Later) -> None:
    finished(goal)
    with rewriting():
        AgentRun.objects.update(finished_at=timezone.now() - timedelta(days=2))
    later()
    later(20)
    assert (letters, Notice.objects.count()) == ([], 0)


def test_a_feed_that_was_never_written_leaves_it_to_the_next(goal: Goal, later: Later) -> None:
    finished(goal)
    later()
    later(20)
    feed = feeds.begin(assistant_of(goal.user).thread, timezone.now())
    assert feed is not None
    later(20)
    assert receipts() == [("feed", "reserved")]
    Feed.objects.all().delete()
    again = feeds.begin(assistant_of(goal.user).thread, timezone.now())
    assert again is not None
    assert "say it again" in feeds.material(again)


def test_a_feed_is_marked_with_what_the_agents_of_its_notices_have_read(goal: Goal, later: Later) -> None:
    assistant = assistant_of(goal.user).thread
    ApprovalFactory(action__run__thread=assistant)  # of no goal, so it is none of the facts
    later()
    later(20, tick=False)
    finished(goal)
    type(assistant).objects.filter(pk=assistant.pk).update(sources=["https://stranger.example"])
    feed = feeds.begin(assistant, timezone.now())
    assert feed is not None
    assert "say it again" in feeds.material(feed)
    assert feed.sources == ["https://stranger.example"]
