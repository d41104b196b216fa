"""Pictures and files in a real browser: chosen, pasted, dropped, taken out again, sent, and looked at."""

import base64
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, Page, expect

from agents.live.stream import redis_client
from goals.models import Goal
from memory.models import AgentRun, Attachment, ThreadMessage
from tests.browser.access import PHONE, assert_usable
from tests.browser.conftest import signed_in
from tests.browser.looks import assert_equals_reload, send
from tests.factories import AgentRunFactory, GoalFactory, ThreadMessageFactory
from tests.pictures import picture
from tests.processes import wait_until, web, worker

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Files of a page's own making, given to an event as the browser would give them.
GIVE = """([event, place, files]) => {
  const data = new DataTransfer();
  for (const [name, type, content] of files) {
    const bytes = Uint8Array.from(atob(content), (char) => char.charCodeAt(0));
    data.items.add(new File([bytes], name, { type }));
  }
  const about = { bubbles: true, cancelable: true };
  const made = event === "paste"
    ? new ClipboardEvent(event, { ...about, clipboardData: data })
    : new DragEvent(event, { ...about, dataTransfer: data });
  document.querySelector(place).dispatchEvent(made);
}"""


@pytest.fixture(scope="module")
def site(django_db_setup: None) -> Iterator[str]:
    redis_client().flushdb()
    with web(WAYMARK_ATTACHMENT_BYTES="100000") as address, worker():
        yield address


@pytest.fixture
def goal(user: User) -> Goal:
    return GoalFactory.create(user=user, title="Vienna half marathon")


@pytest.fixture
def page(browser: Browser, site: str, user: User, goal: Goal) -> Iterator[Page]:
    """The goal's page, which must not complain while it is used."""
    troubles: list[str] = []
    context = signed_in(browser, site, user)
    opened = context.new_page()
    opened.on("console", lambda said: troubles.append(said.text) if said.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: troubles.append(str(error)))
    opened.goto(f"/goals/{goal.pk}/")
    expect(opened.locator(".bar .live").first).to_have_text("Live")
    yield opened
    context.close()
    wait_until(lambda: not AgentRun.objects.live().exists(), 30)
    assert [words for words in troubles if "status of 422" not in words] == []


def give(page: Page, event: str, place: str, *files: tuple[str, str, bytes]) -> None:
    page.evaluate(GIVE, [event, place, [(name, kind, base64.b64encode(data).decode()) for name, kind, data in files]])


def seen(page: Page) -> bool:
    """Whether every picture of the conversation has been loaded."""
    script = "[...document.querySelectorAll('.picture img')].every((img) => img.complete && img.naturalWidth > 0)"
    return bool(page.evaluate(script))


SHOE = ("shoe.png", "image/png", picture(400, 300))
LOG = ("log.csv", "text/csv", b"km,min\n12,60\n")


def test_pictures_are_pasted_and_files_dropped_and_one_is_taken_out_again(page: Page, goal: Goal) -> None:
    attached = page.locator("[data-attached] .file")
    give(page, "paste", "#composer-text", SHOE)
    expect(attached.locator("canvas")).to_be_visible()
    give(page, "dragover", "#turns", LOG)
    expect(page.locator("#composer")).to_have_attribute("data-drop", "")
    give(page, "drop", "#turns", LOG, ("other.txt", "text/plain", b"words"))
    expect(page.locator("#composer[data-drop]")).to_have_count(0)
    expect(attached).to_have_count(3)
    page.get_by_role("button", name="Remove other.txt").click()
    expect(attached).to_have_count(2)
    size = attached.filter(has_text="log.csv").locator(".faint").inner_text()
    assert size == "13 bytes"
    send(page, "Which shoe?")

    expect(page.locator(".ask .picture img")).to_have_attribute("alt", "shoe.png")
    expect(page.locator(".ask .file")).to_contain_text("log.csv")
    expect(page.locator(".ask .file .faint")).to_have_text(size)
    expect(attached).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_have_value("")
    wait_until(lambda: seen(page))
    expect(page.locator(".say")).to_contain_text("demonstration")
    expect(page.locator("[data-stop]")).to_have_count(0)
    assert_equals_reload(page)
    wait_until(lambda: seen(page))
    assert list(Attachment.objects.values_list("name", flat=True)) == ["shoe.png", "log.csv"]
    with page.expect_response("**/attachments/*/") as answer:
        page.locator(".picture").click()
    assert answer.value.headers["content-disposition"] == 'inline; filename="shoe.png"'


def test_a_picture_may_be_sent_without_words(page: Page, goal: Goal) -> None:
    page.get_by_label("Attach files").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": SHOE[2]})
    page.get_by_label("Message", exact=True).press("Enter")
    expect(page.locator(".ask .picture img")).to_be_visible()
    expect(page.locator(".say")).to_be_visible()


def test_what_is_pasted_from_a_table_is_its_text(page: Page) -> None:
    page.evaluate("""() => {
      const data = new DataTransfer();
      data.setData("text/plain", "12\\t60");
      data.setData("text/html", "<table><tr><td>12<td>60</table>");
      data.items.add(new File(["x"], "table.png", { type: "image/png" }));
      const paste = new ClipboardEvent("paste", { bubbles: true, cancelable: true, clipboardData: data });
      document.getElementById("composer-text").dispatchEvent(paste);
    }""")
    expect(page.locator("[data-attached] .file")).to_have_count(0)
    give(page, "drop", "#sidebar-body", SHOE)
    expect(page.locator("[data-attached] .file")).to_have_count(1)


def test_files_that_are_too_large_are_refused_before_they_are_sent(page: Page, goal: Goal) -> None:
    give(page, "paste", "#composer-text", SHOE)
    give(page, "drop", "#turns", ("film.mov", "video/quicktime", bytes(100_001)))
    page.set_viewport_size(PHONE)
    expect(page.locator("#toasts")).to_contain_text("film.mov is too large; a file may have at most 97.7 KB.")
    expect(page.locator("[data-attached] .file")).to_have_count(1)
    toast, composer = page.locator("#toasts").bounding_box(), page.locator("#composer").bounding_box()
    assert toast
    assert composer
    assert toast["y"] + toast["height"] <= composer["y"], "what is written stays in sight"


def test_what_the_server_refuses_stays_in_the_composer(page: Page, goal: Goal) -> None:
    give(page, "paste", "#composer-text", ("empty.txt", "text/plain", b""), SHOE)
    with page.expect_response(lambda response: response.status == 422):
        send(page, "Which shoe?")
    expect(page.locator("#composer-note")).to_contain_text("empty.txt is empty.")
    expect(page.locator("[data-attached] .file")).to_have_count(2)
    expect(page.get_by_label("Message", exact=True)).to_have_value("Which shoe?")
    assert not ThreadMessage.objects.filter(thread=goal.thread).exists()
    page.get_by_role("button", name="Remove empty.txt").click()
    page.get_by_label("Message", exact=True).press("Enter")
    expect(page.locator(".ask .picture img")).to_be_visible()
    expect(page.locator("#composer-note")).to_be_empty()


def test_without_script_a_form_sends_files(browser: Browser, site: str, user: User, goal: Goal) -> None:
    context = signed_in(browser, site, user, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"/goals/{goal.pk}/")
    chooser = page.locator("input[type=file]")
    expect(chooser).to_be_visible()
    chooser.set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": SHOE[2]})
    page.get_by_label("Message", exact=True).fill("Which shoe?")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".ask .picture img")).to_be_visible()
    context.close()
    wait_until(lambda: not AgentRun.objects.live().exists(), 30)


def test_everybody_can_use_it_on_any_screen(browser: Browser, site: str, user: User, goal: Goal) -> None:
    run = AgentRunFactory.create(thread=goal.thread)
    message = ThreadMessageFactory.create(thread=goal.thread, run=run, content="Which of these?")
    attached(message, "a-very-long-name-of-a-picture-that-goes-on-and-on.png", 1_600, 900)
    attached(message, "tall.png", 300, 1_600)
    message.metadata["attachments"].append(
        {"id": str(run.pk), "name": "a" * 100 + ".csv", "media_type": "text/plain", "size": 12_000}
    )
    message.save()
    context = signed_in(browser, site, user)
    page = context.new_page()
    page.goto(f"/goals/{goal.pk}/")
    give(page, "paste", "#composer-text", SHOE, LOG, ("b" * 100 + ".txt", "text/plain", b"words"))
    expect(page.locator("[data-attached] canvas")).to_be_visible()
    wait_until(lambda: seen(page))
    assert_usable(page)
    context.close()


def attached(message: ThreadMessage, name: str, width: int, height: int) -> None:
    """A picture of the message, as it stands when it has been taken in."""
    small = picture(width // 4, height // 4)
    place = len(message.metadata.get("attachments", []))
    row = Attachment.objects.create(
        thread=message.thread,
        message=message,
        place=place,
        name=name,
        media_type="image/png",
        size=len(small),
        sha256=f"{place:064}",
        block={},
        content=small,
        thumbnail=small,
    )
    told = {"id": str(row.pk), "name": name, "media_type": "image/png", "size": 4, "width": width, "height": height}
    message.metadata.setdefault("attachments", []).append(told)
