"""No account fills the disk with texts: there is a quota, in the browser, over the API and for agents (threat T16)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.template.defaultfilters import filesizeformat
from django.test import Client
from pytest_django import Settings

from goals import deeds
from goals.models import Goal, Schedule
from goals.services import create_goal
from memory.documents import Place, keep_document_version, write_document
from memory.models import Document, Learning, Note, NoteVersion, Skill, SkillFile
from memory.notes import NoteRefused, create_note, delete_note, keep_version, update_note
from memory.room import ROW
from memory.skills import change_skill
from tests.factories import DocumentFactory, LearningFactory, NoteFactory, SkillFactory, bearer
from tests.memory.test_skill_files import TEXT, zipped
from tools.models import AgentAction

pytestmark = pytest.mark.django_db(transaction=True)

FULL = "There is no room for it"


@pytest.fixture
def room(settings: Settings) -> Callable[[int], None]:
    """Leaves room for so many bytes of one more text, with all that is there."""

    def leave(left: int) -> None:
        texts = [each.body for each in (*Note.objects.all(), *NoteVersion.objects.all())]
        settings.WAYMARK_TEXT_QUOTA = sum(len(text) + ROW for text in texts) + left + ROW

    return leave


def test_a_note_that_does_not_fit_is_refused_and_what_was_typed_is_still_there(
    client: Client, goal: Goal, room: Callable[[int], None]
) -> None:
    create_note(goal.thread, "First", "x" * 1_000)
    room(10)
    typed = {"title": "Second", "body": "y" * 11, "goal": str(goal.pk)}
    refused = client.post("/notes/new/", typed)
    assert refused.status_code == 422
    assert FULL in refused.text
    assert "y" * 11 in refused.text
    api = f"/api/v1/goals/{goal.pk}/notes"
    answer = client.post(api, {"title": "Second", "body": "y" * 11}, "application/json", headers=bearer(goal.user))
    assert (answer.status_code, FULL in answer.json()["error"]["message"]) == (400, True)
    assert Note.objects.count() == 1
    assert client.post("/notes/new/", typed | {"body": "y" * 10}).status_code == 302
    delete_note(Note.objects.get(title="First"))
    assert client.post("/notes/new/", typed).status_code == 302


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
def test_a_note_that_grows_too_much_stays_as_it_was_and_what_was_typed_is_still_there(
    client: Client, goal: Goal, room: Callable[[int], None], script: bool
) -> None:
    note = create_note(goal.thread, "First", "x" * 1_000)
    room(0)
    settings_for = {"HX-Request": "true"} if script else {}
    typed = {"title": "First", "body": "y" * (1_001 + ROW)}
    refused = client.post(f"/notes/{note.pk}/", typed, headers=settings_for)
    assert refused.status_code == 422
    assert FULL in refused.text
    assert script or typed["body"] in refused.text
    note.refresh_from_db()
    assert note.body == "x" * 1_000
    room(-2 * ROW)  # less than there is by now
    update_note(note, body="z" * 900)  # in one go with what its user had typed, so nothing is added
    assert Note.objects.get().body == "z" * 900


def test_documents_skills_and_learnings_that_do_not_fit_are_refused(
    client: Client, user: User, settings: Settings
) -> None:
    write_document(Place(user.pk, None, "SOUL"), "Kind.")
    settings.WAYMARK_TEXT_QUOTA = 2 * ROW
    json, headers = "application/json", bearer(user)
    refused = client.post("/memory/USER/", {"body": "Is called Kim."})
    assert (refused.status_code, FULL in refused.text, "Is called Kim." in refused.text) == (422, True, True)
    given = {"name": "USER", "text": "Kim"}
    assert client.post("/api/v1/documents", given, json, headers=headers).status_code == 400
    refused = client.post("/memory/skills/new/", {"text": TEXT})
    assert (refused.status_code, FULL in refused.text, "How to plan a week." in refused.text) == (422, True, True)
    upload = {"file": SimpleUploadedFile("s.zip", zipped({"SKILL.md": TEXT}))}
    assert FULL in client.post("/api/v1/skills", upload, headers=headers).json()["error"]["message"]
    answer = client.post("/api/v1/agent/learnings", {"text": "Runs."}, json, headers=headers)
    assert FULL in answer.json()["error"]["message"]
    assert (Document.objects.count(), Skill.objects.count(), Learning.objects.count()) == (1, 0, 0)


def test_a_skill_whose_newer_version_does_not_fit_stays(client: Client, user: User, settings: Settings) -> None:
    skill = SkillFactory(user=user, name="plan-a-week")
    settings.WAYMARK_TEXT_QUOTA = 2 * ROW
    upload = {"file": SimpleUploadedFile("s.zip", zipped({"SKILL.md": TEXT})), "replace": "true"}
    assert FULL in client.post("/api/v1/skills", upload, headers=bearer(user)).json()["error"]["message"]
    skill.refresh_from_db()
    assert (skill.text == TEXT, skill.is_on, skill.versions.count()) == (False, True, 0)


def test_every_kind_counts_with_all_that_it_said(client: Client, goal: Goal, settings: Settings) -> None:
    note = NoteFactory(thread=goal.thread, body="ä" * 100)
    keep_version(note)
    document = DocumentFactory(thread=goal.thread, text="d" * 200)
    keep_document_version(document)
    LearningFactory(thread=goal.thread, text="l" * 30)
    skill = SkillFactory(user=goal.user)
    SkillFile.objects.create(skill=skill, path="a.md", content=b"f" * 400)
    before = len(skill.text)
    change_skill(skill, f"{skill.text}!")
    kept = before + len(skill.versions.get().files)
    NoteFactory(body="of somebody else")
    used = 200 + 200 + 200 + 200 + 30 + (before + 1) + 400 + kept + 8 * ROW
    settings.WAYMARK_TEXT_QUOTA = used + 10 + ROW
    with pytest.raises(NoteRefused):
        create_note(goal.thread, "More", "x" * 11)
    create_note(goal.thread, "More", "x" * 10)
    assert (
        f"take {filesizeformat(used + 10 + ROW)} of {filesizeformat(used + 10 + ROW)}." in client.get("/memory/").text
    )
    settings.WAYMARK_TEXT_QUOTA = 0
    create_note(goal.thread, "More", "x" * 100_000)
    assert "with what they said before" not in client.get("/memory/").text


def test_what_does_not_count_comes_back_however_little_room_there_is(
    client: Client, goal: Goal, settings: Settings
) -> None:
    schedule = deeds.set_time(goal.thread, "every day 8:00", "Look.")
    deeds.delete_time(schedule)
    note = NoteFactory(thread=goal.thread, body="x" * 100)
    settings.WAYMARK_TEXT_QUOTA = 10
    client.post(f"/actions/{AgentAction.objects.get(tool='delete_time').pk}/undo")
    assert Schedule.objects.filter(pk=schedule.pk).exists()
    assert Note.objects.get() == note


def test_of_many_writers_at_once_no_more_get_in_than_there_is_room_for(goal: Goal, settings: Settings) -> None:
    settings.WAYMARK_TEXT_QUOTA = 3 * (100 + ROW) + 50

    def write(n: int) -> bool:
        try:
            create_note(goal.thread, f"Note {n}", "x" * 100)
        except NoteRefused:
            return False
        finally:
            connection.close()
        return True

    with ThreadPoolExecutor(8) as many:
        assert sum(many.map(write, range(16))) == 3
    assert Note.objects.count() == 3


def test_nobody_has_more_goals_than_may_be(client: Client, user: User, settings: Settings) -> None:
    settings.WAYMARK_GOALS = 2
    create_goal(user, "First")
    client.post("/goals/new/", {"title": "Second"})
    refused = client.post("/goals/new/", {"title": "Third"})
    assert (refused.status_code, "You have 2 goals" in refused.text, 'value="Third"' in refused.text) == (
        422,
        True,
        True,
    )
    answer = client.post("/api/v1/goals", {"title": "Third"}, "application/json", headers=bearer(user))
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "too_many")
    assert Goal.objects.count() == 2
    settings.WAYMARK_GOALS = 0
    create_goal(user, "Third")
