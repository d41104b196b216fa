"""What notes said before, and that they can say it again (mission E1)."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from goals.models import Goal
from goals.text_history import note_history
from memory import notes, versions
from memory.models import Author, Note, NoteVersion
from tests.factories import bearer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def note(goal: Goal) -> Note:
    """Written by the agent an hour ago."""
    note = notes.create_note(goal.thread, "Plan", "Mon: rest\nWed: intervals\nSun: long run", Author.AGENT)
    an_hour_later(note)
    return note


def an_hour_later(note: Note) -> None:
    Note.objects.filter(pk=note.pk).update(updated_at=timezone.now() - timedelta(hours=1))
    note.refresh_from_db()


def told(note: Note) -> list[str]:
    """The history in short: who, what went and came."""
    said = []
    for edit in note_history(note):
        pieces = [f"{piece.kind}({piece.text})" for piece in edit.pieces if piece.kind]
        said.append(" ".join(["agent:" if edit.by_agent else "you:", *pieces]))
    return said


def test_each_change_says_who_and_what(note: Note) -> None:
    notes.update_note(note, body="Mon: rest\nWed: easy run\nSun: long run", editor=Author.AGENT)
    an_hour_later(note)
    notes.update_note(note, body="Mon: rest\nWed: easy run\nSun: long run, flat\nand more\nand more")
    assert told(note) == ["you: del(run) ins(run, flat)", "agent: del(intervals) ins(easy run)", "agent:"]
    assert note_history(note)[0].more == 2


def test_what_is_typed_in_one_go_is_one_change(client: Client, goal: Goal, note: Note) -> None:
    for text in ("M", "Mo", "Mon: swim"):
        client.post(f"/notes/{note.pk}/", {"title": "Plan", "body": text})
    assert NoteVersion.objects.count() == 1
    client.post(f"/notes/{note.pk}/", {"title": "Plan", "body": "Mon: swim"})
    note.refresh_from_db()
    assert (note.body, note.edited_by) == ("Mon: swim", "user")
    an_hour_later(note)
    client.post(f"/notes/{note.pk}/", {"title": "Plan", "body": "Mon: swim"})
    assert NoteVersion.objects.count() == 1  # nothing was changed
    client.post(f"/notes/{note.pk}/", {"title": "Plan", "body": "Mon: row"})
    assert NoteVersion.objects.count() == 2


def test_a_version_is_restored_and_that_is_history_too(client: Client, note: Note) -> None:
    before = note.body
    notes.update_note(note, title="Other", body="Nothing <b>left</b>", editor=Author.AGENT)
    page = client.get(f"/notes/{note.pk}/").text
    assert "<ins>Other</ins>" in page
    version = NoteVersion.objects.get()
    assert f"/notes/{note.pk}/restore/{version.pk}/" in page
    shown = client.post(f"/notes/{note.pk}/restore/{version.pk}/", follow=True)
    note.refresh_from_db()
    assert (note.title, note.body, note.edited_by) == ("Plan", before, "user")
    assert "It says again what it said then." in shown.text
    assert NoteVersion.objects.first().body == "Nothing <b>left</b>"  # type: ignore[union-attr]


def test_a_version_that_has_become_too_long_is_not_restored(
    client: Client, note: Note, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.update_note(note, body="Short", editor=Author.AGENT)
    monkeypatch.setattr(Note, "BODY_LENGTH", 10)
    version = NoteVersion.objects.get().pk
    refused = client.post(f"/notes/{note.pk}/restore/{version}/", follow=True)
    assert (refused.redirect_chain, "at most 10 are allowed" in refused.text) == ([(f"/notes/{note.pk}/", 302)], True)
    api = f"/api/v1/notes/{note.pk}/versions/{version}/restore"
    answer = client.post(api, content_type="application/json", headers=bearer(note.user))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid")
    note.refresh_from_db()
    assert (note.body, NoteVersion.objects.count()) == ("Short", 1)


def test_the_oldest_of_many_go(note: Note, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "VERSIONS", 3)
    for n in range(6):
        notes.update_note(note, body=str(n), editor=Author.AGENT)
    assert [version.body for version in NoteVersion.objects.all()] == ["4", "3", "2"]


def test_over_the_api(client: Client, note: Note) -> None:
    api = bearer(note.user)
    notes.update_note(note, body="Other", editor=Author.AGENT)
    (version,) = client.get(f"/api/v1/notes/{note.pk}/versions", headers=api).json()["results"]
    assert version["author"] == "agent"
    again = f"/api/v1/notes/{note.pk}/versions/{version['id']}/restore"
    assert client.post(again, content_type="application/json", headers=api).json()["body"] == version["body"]


def test_the_mark_of_strangers_comes_back_with_what_they_wrote(note: Note) -> None:
    notes.update_note(note, body="From a page", editor=Author.AGENT, sources=["evil.example"])
    notes.update_note(note, body="Mine", editor=Author.AGENT)
    Note.objects.update(sources=[])  # its user has vouched
    notes.restore(NoteVersion.objects.select_related("note").get(body="From a page"))
    note.refresh_from_db()
    assert note.sources == ["evil.example"]


def test_the_list_names_who_wrote_last(client: Client, note: Note) -> None:
    assert "agent, " in client.get("/notes/").text
    notes.update_note(note, body="Mon: swim")
    assert "you, " in client.get("/notes/").text
