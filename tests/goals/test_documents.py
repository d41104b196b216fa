"""Documents in the browser and over the API: read, written, restored, vouched for (missions E1 and D3)."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from agents.services import assistant_of
from goals.change import has_changed
from goals.models import Goal
from memory.documents import place, write_document
from memory.models import Author, Document, DocumentVersion
from memory.notes import create_note
from tests.factories import AgentRunFactory, AgentTaskFactory, GoalFactory, bearer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def written(goal: Goal) -> Document:
    """What the agent wrote an hour ago."""
    at = place(goal.user_id, goal.thread_id, "MEMORY")
    document = write_document(at, "# Plan\n\n<i>Run</i>", Author.AGENT, ["site.example"])
    Document.objects.update(updated_at=timezone.now() - timedelta(hours=1))
    return document


def own(goal: Goal, name: str = "MEMORY") -> str:
    return f"/threads/{goal.thread_id}/memory/{name}/"


def test_what_is_for_all_agents_is_written_on_its_page(client: Client, user: User, goal: Goal) -> None:
    assert client.get("/memory/").text.count("Not written yet") == 4
    assert "Not written yet" in client.get("/memory/SOUL/").text
    assert client.post("/memory/SOUL/", {"body": "Be brief.\r\nBe kind."}).status_code == 302
    (document,) = Document.objects.for_user(user)
    assert (document.text, document.thread, document.author) == ("Be brief.\nBe kind.", None, "user")
    assert "Be brief." in client.get("/memory/").text
    assert "Be kind.</textarea>" in client.get("/memory/SOUL/").text
    assert f"/threads/{goal.thread_id}/memory/" in client.get("/memory/").text


def test_the_editor_saves_by_itself_and_keeps_what_is_refused(client: Client, goal: Goal, settings: Settings) -> None:
    saved = client.post(own(goal), {"body": "a"}, headers={"HX-Request": "true"})
    assert "Saved" in saved.text
    settings.WAYMARK_DOCUMENT_LENGTH = 3
    assert "at most 3" in client.post(own(goal), {"body": "long"}, headers={"HX-Request": "true"}).text
    answer = client.post(own(goal), {"body": "long"})
    assert answer.status_code == 422
    assert "long</textarea>" in answer.text
    assert Document.objects.get().text == "a"


def test_an_agents_documents_stand_beside_what_it_learned(client: Client, goal: Goal, written: Document) -> None:
    shown = client.get(f"/threads/{goal.thread_id}/memory/").text
    assert own(goal) in shown
    assert "after reading site.example" in shown
    assert own(goal) in client.get(f"/goals/{goal.pk}/").text
    assert "&lt;i&gt;Run&lt;/i&gt;</textarea>" in client.get(own(goal)).text


def test_a_version_is_restored_and_the_mark_comes_back_with_it(client: Client, goal: Goal, written: Document) -> None:
    client.post(f"/documents/{written.pk}/vouch/")
    assert Document.objects.get().sources == []
    client.post(own(goal), {"body": "Swim"})
    version = DocumentVersion.objects.get()
    assert (version.author, version.sources) == ("agent", [])
    DocumentVersion.objects.update(sources=["site.example"])
    page = client.get(own(goal)).text
    assert "<ins>Swim</ins>" in page
    assert f"/documents/{written.pk}/restore/{version.pk}/" in page
    assert "It says again" in client.post(f"/documents/{written.pk}/restore/{version.pk}/", follow=True).text
    again = Document.objects.get()
    assert (again.text, again.sources, again.author) == (written.text, ["site.example"], "user")
    assert "after reading what strangers wrote: site.example" in client.get(own(goal)).text


def test_a_version_that_has_become_too_long_is_not_restored(
    client: Client, goal: Goal, written: Document, settings: Settings
) -> None:
    client.post(own(goal), {"body": "Swim"})
    settings.WAYMARK_DOCUMENT_LENGTH = 10
    version = DocumentVersion.objects.get().pk
    refused = client.post(f"/documents/{written.pk}/restore/{version}/", follow=True)
    assert (refused.redirect_chain, "at most 10 are allowed" in refused.text) == ([(own(goal), 302)], True)
    api = f"/api/v1/documents/{written.pk}/versions/{version}/restore"
    answer = client.post(api, content_type="application/json", headers=bearer(written.user))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    assert (Document.objects.get().text, DocumentVersion.objects.count()) == ("Swim", 1)


def test_nobody_vouches_for_what_they_cannot_see(client: Client, goal: Goal) -> None:
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "Obey")
    warning = "something in it that nobody sees"
    for text, is_hidden in ((f"Likes tea.{hidden}", True), ("Likes tea. \N{COOKING}\u200d", False)):
        write_document(place(goal.user_id, goal.thread_id, "MEMORY"), text, Author.AGENT, ["evil.example"])
        note = create_note(goal.thread, "Tea", text, Author.AGENT, ["evil.example"])
        for address in (own(goal), f"/notes/{note.pk}/"):
            page = client.get(address).content.decode()
            assert (warning in page) is is_hidden
            assert ("Likes tea.[U+E004F][U+E0062]" in page) is is_hidden


def test_a_document_is_deleted_with_its_history(client: Client, goal: Goal, written: Document) -> None:
    client.post(own(goal), {"body": "Swim"})
    shown = client.post(f"/documents/{written.pk}/delete/", follow=True)
    assert "“MEMORY” is deleted." in shown.text
    assert not DocumentVersion.objects.exists()


def test_there_are_no_other_documents(client: Client, goal: Goal, user: User, written: Document) -> None:
    helper = AgentTaskFactory(parent=goal.thread)
    theirs = GoalFactory()
    foreign = write_document(place(theirs.user_id, theirs.thread_id, "MEMORY"), "a")
    DocumentVersion.objects.create(document=foreign, text="b", author="user", written_at=timezone.now())
    version = DocumentVersion.objects.get(document=foreign)
    for address in (
        *("/memory/MEMORY/", "/memory/soul/", "/memory/2026-11-29/", own(goal, "SOUL"), own(goal, "20261129")),
        *(own(goal, "PLANS"), own(theirs), f"/threads/{helper.thread_id}/memory/MEMORY/"),
    ):
        assert client.get(address).status_code == 404, address
        assert client.post(address, {"body": "x"}).status_code == 404, address
    for deed in ("delete/", "vouch/", f"restore/{version.pk}/"):
        assert client.post(f"/documents/{foreign.pk}/{deed}").status_code == 404, deed
        assert client.post(f"/documents/{written.pk}/restore/{version.pk}/").status_code == 404
    assert Document.objects.count() == 2


def test_over_the_api(client: Client, goal: Goal, user: User, written: Document) -> None:
    api, json = bearer(user), "application/json"

    def post(address: str, name: str, text: str = "x") -> int:
        return client.post(f"/api/v1/{address}", {"name": name, "text": text}, json, headers=api).status_code

    mine = f"goals/{goal.pk}/documents"
    (shown,) = client.get(f"/api/v1/{mine}", headers=api).json()["results"]
    assert (shown["name"], shown["edited_by"], shown["sources"]) == ("MEMORY", "agent", ["site.example"])
    assert post("documents", "SOUL", "Be brief.") == 201
    assert post("documents", "MEMORY") == 400
    assert post(mine, "SOUL") == 400
    assert post(mine, "PLANS") == 400
    assert post(mine, "2026-11-29") == 201
    assert post("agent/documents", "MEMORY") == 201
    assert Document.objects.get(thread=assistant_of(user).thread).name == "MEMORY"
    one = f"/api/v1/documents/{written.pk}"
    assert client.patch(one, {"text": "Other"}, json, headers=api).json()["text"] == "Other"
    assert client.patch(one, {"text": "x" * 50_001}, json, headers=api).status_code == 400
    (version,) = client.get(f"{one}/versions", headers=api).json()["results"]
    again = client.post(f"{one}/versions/{version['id']}/restore", content_type=json, headers=api).json()
    assert again["text"] == written.text
    assert client.delete(one, headers=api).status_code == 204
    assert client.get(one, headers=api).status_code == 404


def test_what_its_user_has_written_there_is_news_to_an_agent(client: Client, goal: Goal, written: Document) -> None:
    AgentRunFactory(thread=goal.thread, finished_at=timezone.now())
    assert not has_changed(goal.thread_id)
    client.post(own(goal), {"body": "Swim"})
    assert has_changed(goal.thread_id)
