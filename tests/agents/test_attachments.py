"""What people attach: taken in and given out again, through the pages and the API, whatever it is."""

import json
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from threading import Event, Semaphore
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from pytest_django import Settings

from agents.services import send_message
from goals.models import Goal
from goals.services import delete_goal
from memory import images, llm_transcript
from memory.attachments import Prepared, prepare
from memory.models import Attachment, ThreadMessage
from tests.factories import AgentHistoryFactory, GoalFactory, HistoryEntryFactory, UserFactory, bearer
from tests.pictures import bomb, chunks, comments, markers, opened, photo, picture, scans, text_bomb, upload

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("rung")]

LOCKED = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def owner(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def post(api: Client, goal: Goal, *files: Any, **fields: Any) -> Any:
    return api.post(f"/api/v1/goals/{goal.pk}/messages", {"content": "Look", **fields, "files": list(files)})


def attached(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 202, answer.content
    found: list[dict[str, Any]] = answer.json()["message"]["metadata"]["attachments"]
    return found


def test_a_picture_is_taken_in_and_given_out_again(api: Client, goal: Goal) -> None:
    (told,) = attached(post(api, goal, upload("shoe.png", picture(400, 300))))
    about = {"name": "shoe.png", "media_type": "image/png", "width": 400, "height": 300}
    assert told == {"id": told["id"], "size": told["size"], **about}
    answer = api.get(f"/api/v1/attachments/{told['id']}")
    assert (answer.status_code, answer["Content-Type"], len(answer.content)) == (200, "image/png", told["size"])
    assert opened(answer.content).size == (400, 300)
    assert answer["Content-Disposition"] == 'inline; filename="shoe.png"'
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Security-Policy"] == LOCKED
    again = api.get(f"/api/v1/attachments/{told['id']}", headers={"If-None-Match": answer["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    listed = api.get(f"/api/v1/goals/{goal.pk}/messages").json()["results"]
    assert listed[0]["metadata"]["attachments"] == [told]


def test_a_photo_loses_what_it_says_of_its_owner_and_stands_upright(api: Client, goal: Goal) -> None:
    (told,) = attached(post(api, goal, upload("IMG_1.JPG", photo(60, 20), "image/jpeg")))
    content = api.get(f"/api/v1/attachments/{told['id']}").content
    assert (told["name"], told["width"], told["height"]) == ("IMG_1.JPG", 20, 60)
    assert b"SECRET" not in content
    assert not opened(content).getexif()
    thumb = api.get(f"/api/v1/attachments/{told['id']}/thumbnail").content
    assert b"SECRET" not in thumb
    assert opened(thumb).size == (20, 60)


def test_a_large_picture_is_kept_smaller(api: Client, goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_IMAGE_SIDE = 100
    (told,) = attached(post(api, goal, upload("wide.webp", picture(300, 150, "WEBP"), "image/webp")))
    assert (told["name"], told["media_type"], told["width"], told["height"]) == ("wide.jpg", "image/jpeg", 100, 50)


def test_of_a_moving_picture_the_first_frame_stays(api: Client, goal: Goal) -> None:
    frames = [opened(picture(20, 20, color=color)) for color in ("red", "blue")]
    data = picture(20, 20, "GIF", color="red", save_all=True, append_images=frames[1:])
    (told,) = attached(post(api, goal, upload("turns.gif", data, "image/gif")))
    shown = opened(api.get(f"/api/v1/attachments/{told['id']}").content)
    assert (told["name"], shown.format, getattr(shown, "n_frames", 1)) == ("turns.png", "PNG", 1)
    assert shown.convert("RGB").getpixel((5, 5)) == (255, 0, 0)


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
PAGE = b"<html><script>alert(1)</script></html>"


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("picture.svg", SVG, "text/plain"),
        ("page.html", PAGE, "text/plain"),
        ("page.png", PAGE, "text/plain"),
        ("cut.jpg", picture(300, 300, "JPEG")[:-200], "application/octet-stream"),
        ("cut.png", picture(300, 300)[:60], "application/octet-stream"),
        ("data.pdf", b"%PDF-1.7\n\x00\xff", "application/pdf"),
        ("data.csv", b"PK\x03\x04\x00\x00", "application/zip"),
        ("log.txt", "Läufe\r\n12 km".encode(), "text/plain"),
        ("zeros.txt", b"a\x00b", "application/octet-stream"),
        ("boom.png", text_bomb(), "application/octet-stream"),
        ("scans.jpg", scans(80, 101), "application/octet-stream"),
        ("chunks.png", chunks(30_000), "application/octet-stream"),
        ("markers.jpg", markers(30_000), "application/octet-stream"),
        ("comments.gif", comments(30_000), "application/octet-stream"),
    ],
)
def test_what_is_no_picture_is_a_file_that_no_browser_runs(
    api: Client, owner: Client, goal: Goal, name: str, data: bytes, kind: str
) -> None:
    (told,) = attached(post(api, goal, upload(name, data)))
    assert (told["media_type"], told["size"]) == (kind, len(data))
    assert "width" not in told or told["width"] is None
    for answer in (api.get(f"/api/v1/attachments/{told['id']}"), owner.get(f"/attachments/{told['id']}/")):
        assert answer.content == data
        assert answer["Content-Disposition"].startswith("attachment")
        assert answer["Content-Type"].split(";")[0] == kind
        assert (answer["X-Content-Type-Options"], answer["Content-Security-Policy"]) == ("nosniff", LOCKED)
    assert api.get(f"/api/v1/attachments/{told['id']}/thumbnail").status_code == 404
    assert owner.get(f"/attachments/{told['id']}/thumbnail").status_code == 404


def test_pictures_of_many_parts_are_pictures(api: Client, goal: Goal) -> None:
    for name, data in (("a.jpg", scans(80, 90)), ("b.png", chunks(2_000)), ("c.gif", comments(2_000))):
        (told,) = attached(post(api, goal, upload(name, data)))
        assert told["media_type"].startswith("image/"), name


def test_nobody_waits_long_for_the_pictures_of_others(
    api: Client, goal: Goal, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "PATIENCE", 0)
    assert post(api, goal, upload("a.png", picture())).status_code == 202
    with images._one_by_one:
        answer = post(api, goal, upload("b.png", picture()))
        assert (answer.status_code, answer.json()["error"]["code"]) == (429, "attachments_busy")
        settings.WAYMARK_MAX_WAITING_MESSAGES = 1
        answer = post(api, goal, upload("c.png", picture()))
        assert answer.json()["error"]["code"] == "too_many_waiting", "which is known before a picture is read"
    settings.WAYMARK_MAX_WAITING_MESSAGES = 0
    assert post(api, goal, upload("b.png", picture())).status_code == 202


def test_one_user_does_not_hold_all_threads_with_pictures(
    api: Client, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stop = Semaphore(0), Event()

    def slow(*args: Any, **kwargs: Any) -> Prepared:
        begun.release()
        assert stop.wait(60)
        return prepare(*args, **kwargs)

    monkeypatch.setattr("agents.attaching.prepare", slow)

    def once(number: int) -> int:
        try:
            return int(post(api, goal, upload("a.txt", b"a")).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as people:
        sent = [people.submit(once, number) for number in range(4)]
        try:
            assert all(begun.acquire(timeout=60) for _ in sent)
            assert post(api, goal, upload("b.txt", b"b")).status_code == 429
        finally:
            stop.set()
    assert [each.result() for each in sent] == [202] * 4
    assert post(api, goal, upload("b.txt", b"b")).status_code == 202


def test_a_picture_that_is_a_page_as_well_is_only_a_picture(api: Client, goal: Goal) -> None:
    moving = picture(kind="GIF", comment=PAGE)
    for name, data in (("a.html", picture() + PAGE), ("b.png", moving), ("c.exe", picture())):
        (told,) = attached(post(api, goal, upload(name, data, "text/html")))
        content = api.get(f"/api/v1/attachments/{told['id']}").content
        assert told["media_type"] == "image/png"
        assert told["name"].endswith(".png")
        assert b"script" not in content


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\boot.ini", "boot.ini"),
        ("/etc/shadow", "shadow"),
        ("a\x00b.txt", "a\N{REPLACEMENT CHARACTER}b.txt"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("line\r\nSet-Cookie: a=b.txt", "line Set-Cookie: a=b.txt"),
        ('"quoted".txt', '"quoted".txt'),
        ("....", None),
        ("Läufe 🏃.txt", "Läufe 🏃.txt"),
        ("x" * 300 + ".csv", "x" * 116 + ".csv"),
        ("<img src=x onerror=alert(1)>.txt", "<img src=x onerror=alert(1)>.txt"),
    ],
)
def test_names_are_names_and_nothing_else(owner: Client, goal: Goal, name: str, kept: str | None) -> None:
    """Django cleans the names of forms as well; here its part is left out, as other faces would not have it."""
    file = upload("a.txt", b"words", "text/plain")
    file._name = name  # type: ignore[attr-defined]
    message = send_message(goal.thread, "Look", files=[file]).message
    stored = Attachment.objects.get(message=message)
    assert stored.name == (kept or "file")
    answer = owner.get(f"/attachments/{stored.pk}/")
    assert "\n" not in answer["Content-Disposition"]
    page = owner.get(f"/goals/{goal.pk}/").content.decode()
    assert "<img src=x" not in page


def test_what_cannot_be_taken_is_refused_in_words(api: Client, goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_ATTACHMENTS_PER_MESSAGE = 2
    settings.WAYMARK_ATTACHMENT_BYTES = 20_000
    settings.WAYMARK_ATTACHMENTS_BYTES = 30_000
    text = upload("a.txt", b"a" * 20_000)
    for files, code, words in [
        ([upload("empty.txt", b"")], "attachment_empty", "empty.txt is empty."),
        ([upload("big.txt", b"a" * 20_001)], "attachment_too_large", "big.txt has 19.5 KB; a file may have at most"),
        ([text, upload("b.txt", b"b" * 15_000)], "attachment_too_large", "together"),
        ([upload(f"{n}.txt", b"x") for n in range(3)], "too_many_attachments", "3 files are attached; at most 2"),
        ([upload("100mp.png", bomb(10_000, 10_000))], "attachment_too_large", "100mp.png has 100 million pixels"),
    ]:
        answer = post(api, goal, *files)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
        assert words in answer.json()["error"]["message"]
    assert not Attachment.objects.exists()
    assert not ThreadMessage.objects.filter(thread=goal.thread).exists()


def test_more_parts_than_are_read_are_refused(api: Client, goal: Goal) -> None:
    fields = {f"field{n}": "x" for n in range(2_000)}
    for answer in (
        post(api, goal, *(upload(f"{n}.txt", b"x") for n in range(600))),
        post(api, goal, upload("a.txt", b"x"), **fields),
    ):
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    assert not Attachment.objects.exists()


def test_a_user_cannot_fill_the_disk(api: Client, goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_ATTACHMENT_QUOTA = 1_000
    assert post(api, goal, upload("a.txt", b"a" * 600)).status_code == 202
    answer = post(api, goal, upload("b.txt", b"b" * 600))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "attachments_full")
    other = GoalFactory.create()
    assert post(Client(headers=bearer(other.user)), other, upload("b.txt", b"b" * 600)).status_code == 202
    delete_goal(goal)
    assert post(api, GoalFactory.create(user=goal.user), upload("b.txt", b"b" * 600)).status_code == 202


def test_the_same_client_id_gives_the_same_message_and_no_second_copy(
    api: Client, goal: Goal, rung: list[UUID], settings: Settings
) -> None:
    sent = str(uuid4())
    first = post(api, goal, upload("shoe.png", picture()), client_message_id=sent)
    settings.WAYMARK_ATTACHMENT_QUOTA = 1  # what is there already needs no more room
    again = post(api, goal, upload("shoe.png", picture()), client_message_id=sent)
    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json() == first.json()
    assert Attachment.objects.count() == ThreadMessage.objects.count() == len(rung) == 1


def test_the_same_message_twice_at_once_is_one(api: Client, goal: Goal, rung: list[UUID]) -> None:
    sent = str(uuid4())

    def once(number: int) -> int:
        try:
            answer = post(api, goal, upload("shoe.png", picture(200, 200)), client_message_id=sent)
            return int(answer.status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as people:
        assert sorted(people.map(once, range(4))) == [200, 200, 200, 202]
    assert Attachment.objects.count() == ThreadMessage.objects.count() == len(rung) == 1


def test_what_is_attached_goes_with_a_message_that_is_not_accepted(api: Client, goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_MAX_WAITING_MESSAGES = 1
    assert post(api, goal, upload("a.txt", b"a")).status_code == 202
    assert post(api, goal, upload("b.txt", b"b")).status_code == 429
    assert list(Attachment.objects.values_list("name", flat=True)) == ["a.txt"]


def test_files_and_message_come_together_or_not_at_all(
    api: Client, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(place: str) -> None:
        assert Attachment.objects.exists(), "the files are written by then"
        if place == "D0.after":
            raise SystemExit

    monkeypatch.setattr(import_module("agents.engine.journal.accept"), "crashpoint", dies)
    with pytest.raises(SystemExit):
        post(api, goal, upload("shoe.png", picture()))
    assert not Attachment.objects.exists()
    assert not ThreadMessage.objects.exists()


def test_files_may_come_without_words_and_words_as_a_form_without_files(api: Client, goal: Goal) -> None:
    assert post(api, goal, upload("shoe.png", picture()), content="").status_code == 202
    assert post(api, goal).status_code == 202
    refused = post(api, goal, content=" ")
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "blank")
    assert post(api, goal, upload("a.txt", b"a"), colour="red").json()["error"]["fields"] == {
        "colour": ["There is no such field."]
    }


@pytest.mark.parametrize("what", ["", "/thumbnail"])
def test_what_others_attached_does_not_exist(api: Client, owner: Client, goal: Goal, what: str) -> None:
    (told,) = attached(post(api, goal, upload("shoe.png", picture())))
    stranger = UserFactory.create()
    browser = Client()
    browser.force_login(stranger)
    assert owner.get(f"/attachments/{told['id']}{what or '/'}").status_code == 200
    assert browser.get(f"/attachments/{told['id']}{what or '/'}").status_code == 404
    assert Client(headers=bearer(stranger)).get(f"/api/v1/attachments/{told['id']}{what}").status_code == 404
    assert Client().get(f"/attachments/{told['id']}{what or '/'}").status_code == 302
    assert Client().get(f"/api/v1/attachments/{told['id']}{what}").status_code == 401


def test_they_go_with_their_goal(api: Client, goal: Goal) -> None:
    (told,) = attached(post(api, goal, upload("shoe.png", picture())))
    delete_goal(goal)
    assert not Attachment.objects.exists()
    assert api.get(f"/api/v1/attachments/{told['id']}").status_code == 404


def test_a_plain_form_sends_files_and_the_page_shows_them(owner: Client, goal: Goal) -> None:
    address = f"/threads/{goal.thread_id}/messages"
    files = [upload("<b>shoe.png", picture(400, 300)), upload("log.csv", b"km,min\n12,60")]
    answer = owner.post(address, {"content": "Which?", "next": f"/goals/{goal.pk}/", "files": files})
    assert answer.status_code == 302
    page = owner.get(f"/goals/{goal.pk}/").content.decode()
    shoe, log = Attachment.objects.order_by("place")
    assert f'<img src="/attachments/{shoe.pk}/thumbnail" alt="&lt;b&gt;shoe.png" width="400" height="300"' in page
    assert f'<a class="file" href="/attachments/{log.pk}/">' in page
    assert 'enctype="multipart/form-data"' in page


def test_an_earlier_session_still_shows_them(owner: Client, api: Client, goal: Goal) -> None:
    attached(post(api, goal, upload("shoe.png", picture(400, 300)), upload("log.csv", b"km,min")))
    shoe, log = Attachment.objects.order_by("place")
    blocks = [shoe.block, log.block, {"type": "text", "text": "Which?"}]
    entry = {"seq": 1, "role": "user", "blocks": blocks}
    session = AgentHistoryFactory.create(thread=goal.thread, last_seq=1, entries=[entry])
    page = owner.get(f"/sessions/{session.pk}/").content.decode()
    assert f'<img src="/attachments/{shoe.pk}/thumbnail" alt="shoe.png"' in page
    assert f'href="/attachments/{log.pk}/"' in page
    assert "km,min" not in page


def test_staff_read_what_the_model_reads_of_them(api: Client, goal: Goal) -> None:
    attached(post(api, goal, upload("shoe.png", picture(400, 300)), upload("log.csv", b"km,min")))
    blocks = [each.block for each in Attachment.objects.order_by("place")]
    HistoryEntryFactory.create(thread=goal.thread, blocks=blocks)
    page = str(llm_transcript.render(goal.thread))
    assert "image shoe.png" in page
    assert "km,min" in page


def test_words_are_not_lost_when_a_file_is_refused(owner: Client, goal: Goal) -> None:
    address = f"/threads/{goal.thread_id}/messages"
    sent = {"content": "My long question", "files": [upload("empty.txt", b"")]}
    page = owner.post(address, sent)
    assert page.status_code == 422
    assert "My long question</textarea>" in page.content.decode()
    assert "empty.txt is empty." in page.content.decode()
    partial = owner.post(address, sent, headers=HTMX)
    assert (partial.status_code, b"empty.txt is empty." in partial.content) == (422, True)


def test_an_upload_that_is_cut_off_is_refused(api: Client, goal: Goal) -> None:
    kind = "multipart/form-data; boundary=b"
    for body in (b"", b'--b\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nabc', b"\xff" * 50):
        answer = api.post(f"/api/v1/goals/{goal.pk}/messages", body, content_type=kind)
        assert answer.status_code in (202, 400), body
        assert "error" in json.loads(answer.content) or attached(answer)
