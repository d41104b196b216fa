"""A person looks at what an agent keeps in mind, asks why, corrects it, and takes that back (missions E1 and H9)."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from goals.services import create_goal
from memory.documents import place, write_document
from memory.models import Author
from memory.notes import create_note
from memory.skills import add_skill
from tests.browser.access import WIDE, assert_usable
from tests.browser.conftest import signed_in
from tests.factories import AgentActionFactory, AgentRunFactory, LearningFactory, ThreadMessageFactory
from tests.memory.test_skill_files import TEXT, zipped

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SAID = "I only ever run before work, in the evening the children want me."


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_person_asks_why_corrects_it_and_takes_that_back(
    script: bool, browser: Browser, live_server: LiveServer, user: User
) -> None:
    goal = create_goal(user, "Run a half marathon")
    message = ThreadMessageFactory(thread=goal.thread, content=SAID)
    action = AgentActionFactory(thread=goal.thread, user=user, tool="manage_learning")
    LearningFactory(thread=goal.thread, text="Runs before work.", message=message, action=action.pk)
    LearningFactory(thread=goal.thread, text="Is afraid of dogs.", sources=["physio.example"])
    window = signed_in(browser, live_server.url, user, java_script_enabled=script)
    page: Page = window.new_page()
    page.set_viewport_size(WIDE)
    page.goto(f"/goals/{goal.pk}/")
    page.locator("#panel-memory a[href$='#l1']").click()
    first = page.locator("#l1")
    expect(first.get_by_text(SAID)).to_be_visible()
    first.get_by_text("Correct it").click()
    first.get_by_label("What is right").fill("Is afraid of dogs.")
    first.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_have_text("Number 2 says this already.")
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    page.get_by_label("What is right").first.fill("Runs at noon.")
    page.locator("#l1").get_by_role("button", name="Save").click()
    expect(page.get_by_role("status").get_by_text("Corrected: Runs at noon.")).to_be_visible()
    page.get_by_text("What it thought before").click()
    expect(page.get_by_text("replaced by number 3")).to_be_visible()
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#l1 p", has_text="Runs before work.")).to_be_visible()
    page.get_by_role("button", name="Take number 2 back").click()
    expect(page.get_by_text("Taken back: Is afraid of dogs.")).to_be_visible()
    page.get_by_label("In a sentence").fill("Wants figures in km.")
    page.get_by_role("button", name="Keep in mind").click()
    expect(page.locator("#l3 p", has_text="Wants figures in km.")).to_be_visible()


def test_a_person_writes_what_all_agents_are_told(browser: Browser, live_server: LiveServer, user: User) -> None:
    goal = create_goal(user, "Run a half marathon")
    write_document(place(user.pk, goal.thread_id, "USER"), "Is called Kim.", Author.AGENT, ["site.example"])
    page: Page = signed_in(browser, live_server.url, user).new_page()
    page.set_viewport_size(WIDE)
    page.goto("/memory/")
    assert_usable(page)
    page.set_viewport_size(WIDE)
    page.get_by_role("link", name="USER").click()
    with page.expect_response(lambda answer: answer.request.method == "POST" and "/memory/" in answer.url):
        page.get_by_label("Text").fill("Is called **Kim**, a nurse.")
    page.get_by_text("Read", exact=True).click()
    expect(page.locator("#note-read strong")).to_have_text("Kim")
    page.reload()
    page.get_by_text("History").click()
    expect(page.locator(".history ins")).to_have_text("**Kim**, a nurse.")
    assert_usable(page)
    page.set_viewport_size(WIDE)
    page.get_by_role("button", name="I have read it").click()
    page.get_by_role("button", name="Have you read every word?").click()
    expect(page.get_by_text("From now on it counts as yours.")).to_be_visible()
    page.get_by_text("History").click()
    page.get_by_role("button", name="Restore this version").click()
    expect(page.get_by_label("Text")).to_have_value("Is called Kim.")
    page.goto(f"/threads/{goal.thread_id}/memory/")
    page.get_by_role("link", name="MEMORY", exact=True).click()
    expect(page.get_by_role("status").get_by_text("Not written yet")).to_be_visible()
    assert_usable(page)


def test_a_person_looks_at_a_skill_and_switches_it_on(browser: Browser, live_server: LiveServer, user: User) -> None:
    create_goal(user, "Run a half marathon")
    skill = add_skill(user, zipped({"SKILL.md": TEXT, "docs/more.md": "Rest on Mondays.", "x.png": b"\x89"}))
    page: Page = signed_in(browser, live_server.url, user).new_page()
    page.set_viewport_size(WIDE)
    page.goto("/memory/")
    page.get_by_role("link", name="plan-a-week").click()
    expect(page.get_by_text("Rest on Mondays.")).to_be_visible()
    page.get_by_text("Which agents use it").click()
    page.get_by_text("Change it").click()
    assert_usable(page)
    page.set_viewport_size(WIDE)
    page.get_by_label("Run a half marathon").uncheck()
    page.get_by_role("button", name="Save").first.click()
    page.get_by_role("button", name="I have read it, switch it on").click()
    expect(page.get_by_text("Your agents may use “plan-a-week” now.")).to_be_visible()
    skill.refresh_from_db()
    assert skill.is_on
    assert skill.off_for.count() == 1
    page.goto("/memory/skills/new/")
    page.get_by_label("Or write one").fill("# No skill")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("alert")).to_contain_text("must begin with front matter")
    assert_usable(page)


def test_a_person_takes_in_a_folder(browser: Browser, live_server: LiveServer, user: User, tmp_path: Path) -> None:
    (tmp_path / "plan-a-week" / "docs").mkdir(parents=True)
    (tmp_path / "plan-a-week" / "SKILL.md").write_text(TEXT)
    (tmp_path / "plan-a-week" / "docs" / "more.md").write_text("Rest on Mondays.")
    page: Page = signed_in(browser, live_server.url, user).new_page()
    page.goto("/memory/skills/new/")
    page.get_by_label("Or its folder").set_input_files(tmp_path / "plan-a-week")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("docs/more.md")).to_be_visible()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_person_replaces_a_skill_and_takes_that_back(
    script: bool, browser: Browser, live_server: LiveServer, user: User, tmp_path: Path
) -> None:
    skill = add_skill(user, zipped({"SKILL.md": TEXT, "docs/more.md": "Rest on Mondays."}))
    (tmp_path / "newer.zip").write_bytes(zipped({"week/SKILL.md": TEXT, "week/rules.md": "Never rest."}))
    page: Page = signed_in(browser, live_server.url, user, java_script_enabled=script).new_page()
    page.set_viewport_size(WIDE)
    page.goto(f"/memory/skills/{skill.pk}/")
    page.get_by_role("link", name="Bring in a newer one").click()
    page.get_by_label("A zip of its folder").set_input_files(tmp_path / "newer.zip")
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_role("alert")).to_contain_text("You have a skill plan-a-week already")
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    page.get_by_role("button", name="Replace it").click()
    expect(page.get_by_text("“plan-a-week” is replaced.")).to_be_visible()
    expect(page.get_by_text("Never rest.")).to_be_visible()
    expect(page.get_by_text("No agent uses it yet.")).to_be_visible()
    page.get_by_role("button", name="I have read it, switch it on").click()
    page.get_by_text("History").click()
    expect(page.locator(".history del").first).to_contain_text("docs/more.md")
    if script:
        assert_usable(page)
        page.set_viewport_size(WIDE)
    page.get_by_role("button", name="Restore this version").click()
    expect(page.get_by_text("Rest on Mondays.")).to_be_visible()
    expect(page.get_by_text("No agent uses it yet.")).to_be_visible()
    assert [file.path for file in skill.files.all()] == ["docs/more.md"]


def test_a_person_has_an_agent_forget(browser: Browser, live_server: LiveServer, user: User) -> None:
    goal = create_goal(user, "Run a half marathon")
    note = create_note(goal.thread, "Doctor", "Only mornings.")
    run = AgentRunFactory(thread=goal.thread)
    learning = LearningFactory(thread=goal.thread, text="Runs before work.")
    learned = {"kind": "learning", "id": str(learning.pk), "name": learning.text, "before": None, "after": {}}
    AgentActionFactory(run=run, step=1, position=0, tool="read_note", arguments={"id": str(note.pk)})
    AgentActionFactory(run=run, step=2, position=0, undo={"changes": [learned]})
    page: Page = signed_in(browser, live_server.url, user).new_page()
    page.set_viewport_size(WIDE)
    page.goto(f"/notes/{note.pk}/")
    page.get_by_role("button", name="More").click()
    page.get_by_role("link", name="Forget what came of it").click()
    assert_usable(page)
    page.set_viewport_size(WIDE)
    page.get_by_label("Doctor").uncheck()
    page.get_by_role("button", name="Forget what is ticked").click()
    expect(page.get_by_text("Forgotten: what came of “Doctor”")).to_be_visible()
    expect(page.get_by_text("Runs before work.")).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("Runs before work.").first).to_be_visible()
