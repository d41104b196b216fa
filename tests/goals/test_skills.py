"""Skills in the browser and over the API: looked at as a whole before an agent may use one (mission E1)."""

import io
import random
import re
import zipfile
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from pytest_django import Settings

from agents.services import assistant_of
from goals.models import Goal
from memory.models import Skill, SkillFile
from memory.skill_files import read
from memory.skills import VERSIONS, add_skill, change_skill, keep_from, usable
from tests.factories import SkillFactory, bearer
from tests.memory.test_skill_files import TEXT, zipped
from tests.queries import queries

pytestmark = pytest.mark.django_db(transaction=True)

FILES: dict[str, str | bytes] = {"s/SKILL.md": f"{TEXT}<b>Rest\u202e.</b>", "s/a.md": "<i>More", "s/x.png": b"\x89"}


def taken_in(client: Client, content: bytes | None = None, **typed: str) -> str:
    upload = {"file": SimpleUploadedFile("s.zip", content)} if content is not None else {}
    return client.post("/memory/skills/new/", {**upload, **typed}, follow=True).text


def taken_from_folder(client: Client, files: dict[str, bytes], *, with_paths: bool = True) -> str:
    """As a browser sends a folder: the bare names of files, and the paths beside them."""
    folder = [SimpleUploadedFile(path.rpartition("/")[2], content) for path, content in files.items()]
    posted = {"folder": folder, "path": list(files) if with_paths else [], "text": ""}
    return client.post("/memory/skills/new/", posted, follow=True).text


def test_a_folder_is_taken_in_as_it_is(client: Client, user: User) -> None:
    files = {"week/SKILL.md": TEXT.encode(), "week/docs/a.md": b"More", "week/.DS_Store": b"x"}
    assert "docs/a.md" in taken_from_folder(client, files)
    skill = Skill.objects.get(user=user)
    assert [file.path for file in skill.files.all()] == ["docs/a.md"]
    skill.delete()
    assert "a.md" in taken_from_folder(client, files, with_paths=False)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"week/../../a.md": b""}, "is no name of a file"),
        ({"other/a.md": b""}, "stands outside of the folder"),
        ({f"week/{'ä' * 70_000}.md": b""}, "is too long a name"),
        ({f"week/{n}.md": b"" for n in range(120)}, "121 files; at most 100"),
        ({"week/a.bin": b"x" * 2_000_000}, "more than 2,000,000 bytes"),
        ({"week/other/SKILL.md": b""}, "one skill; there are 2"),
    ],
)
def test_a_folder_is_refused_as_its_zip_would_be(more: dict[str, bytes], said: str, client: Client, user: User) -> None:
    assert said in taken_from_folder(client, {"week/SKILL.md": TEXT.encode(), **more})
    assert not Skill.objects.exists()


def switched_on(client: Client, skill: Skill) -> None:
    """As its page does."""
    read = re.search(r'name="read" value="(.*?)"', client.get(f"/memory/skills/{skill.pk}/").text)
    assert read
    client.post(f"/memory/skills/{skill.pk}/switch/", {"on": "1", "read": read[1]})


@pytest.fixture
def skill(client: Client, user: User) -> Skill:
    """One that was taken in from elsewhere."""
    taken_in(client, zipped(FILES))
    return Skill.objects.get(user=user)


def test_all_of_it_is_read_before_it_is_switched_on(client: Client, goal: Goal, skill: Skill) -> None:
    assert not skill.is_on
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") is None
    shown = client.get(f"/memory/skills/{skill.pk}/").text
    assert "&lt;b&gt;Rest[U+202E].&lt;/b&gt;" in shown
    assert "&lt;i&gt;More" in shown
    assert "x.png" in shown
    assert "agents cannot read it" in shown
    assert "plan-a-week" in client.get("/memory/").text
    switched_on(client, skill)
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") == skill
    client.post(f"/memory/skills/{skill.pk}/switch/")
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") is None


def test_it_is_kept_from_single_agents(client: Client, goal: Goal, skill: Skill) -> None:
    switched_on(client, skill)
    assistant = assistant_of(goal.user).thread_id
    both = {"shown": [str(goal.thread_id), str(assistant)]}
    client.post(f"/memory/skills/{skill.pk}/agents/", {**both, "agents": [str(assistant)]})
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") is None
    assert usable(goal.user_id, assistant, "plan-a-week") == skill
    client.post(f"/memory/skills/{skill.pk}/agents/", {"shown": [str(assistant), "x"], "agents": [str(assistant)]})
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") is None
    client.post(f"/memory/skills/{skill.pk}/agents/", {**both, "agents": both["shown"]})
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") == skill


def test_one_is_written_and_changed_by_hand(client: Client, user: User, settings: Settings) -> None:
    assert "must begin with front matter" in taken_in(client, text="# Plan")
    assert "# Plan</textarea>" in taken_in(client, text="# Plan")
    assert "No agent uses it yet" in taken_in(client, text=TEXT.replace("\n", "\r\n"))
    skill = Skill.objects.get(user=user)
    assert skill.text == TEXT
    assert "this very skill" in taken_in(client, text=TEXT)
    page = f"/memory/skills/{skill.pk}/"
    refused = client.post(page, {"text": TEXT.replace("plan-a-week", "Plan")})
    assert refused.status_code == 422
    assert "name: Plan" in refused.text
    SkillFactory(user=user, name="other")
    assert client.post(page, {"text": TEXT.replace("plan-a-week", "other")}).status_code == 422
    client.post(page, {"text": TEXT.replace("plan-a-week", "plan").replace("How", "Way")})
    skill.refresh_from_db()
    assert (skill.name, skill.description) == ("plan", "Way to plan a week.")
    settings.WAYMARK_SKILLS = 2
    assert "At most 2" in taken_in(client, text=TEXT)


NEWER: dict[str, str | bytes] = {"SKILL.md": TEXT.replace("How to", "Best way to"), "b.md": "New"}


def replaced(client: Client, content: bytes) -> str:
    """As a person does, who is asked first."""
    asked = taken_in(client, content)
    carried = re.search(r'name="replace" value="(.*?)"', asked)
    assert carried, asked
    return client.post("/memory/skills/new/", {"replace": carried[1]}, follow=True).text


def test_another_one_of_its_name_takes_its_place_once_its_user_says_so(
    client: Client, goal: Goal, skill: Skill
) -> None:
    switched_on(client, skill)
    assistant = assistant_of(goal.user).thread_id
    keep_from(skill, [assistant])
    asked = taken_in(client, zipped(NEWER))
    assert "“How to plan a week.”" in asked
    assert "its 2 files give way" in asked
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") == skill, "only asked about"
    assert "“plan-a-week” is replaced." in replaced(client, zipped(NEWER))
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") is None
    there = Skill.objects.get()
    assert (there.pk, there.created_at, there.text) == (skill.pk, skill.created_at, NEWER["SKILL.md"])
    assert there.description == "Best way to plan a week."
    assert [file.path for file in there.files.all()] == ["b.md"]
    switched_on(client, skill)
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") == skill
    assert usable(goal.user_id, assistant, "plan-a-week") is None
    assert "this very skill" in taken_in(client, zipped(NEWER))


def test_what_it_was_before_comes_back_with_its_files_and_as_it_was_used(
    client: Client, goal: Goal, skill: Skill
) -> None:
    switched_on(client, skill)
    replaced(client, zipped(NEWER))
    shown = client.get(f"/memory/skills/{skill.pk}/").text
    assert "<del>How</del>" in shown
    (way,) = re.findall(rf"/memory/skills/{skill.pk}/restore/.*?/", shown)
    assert "again what it was then" in client.post(way, follow=True).text
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") == skill
    skill.refresh_from_db()
    assert (skill.text, skill.description) == (FILES["s/SKILL.md"], "How to plan a week.")
    assert {file.path: bytes(file.content) for file in skill.files.all()} == {"a.md": b"<i>More", "x.png": b"\x89"}
    newer = skill.versions.earliest("written_at"), skill.versions.latest("written_at")
    assert [(each.text, each.is_on, [*each.sizes]) for each in newer] == [
        (FILES["s/SKILL.md"], True, ["a.md", "x.png"]),
        (NEWER["SKILL.md"], False, ["b.md"]),
    ]


def test_what_its_user_changes_is_kept_and_of_many_versions_the_oldest_go(client: Client, skill: Skill) -> None:
    for n in range(VERSIONS + 1):
        client.post(f"/memory/skills/{skill.pk}/", {"text": f"{TEXT}{n}"})
    client.post(f"/memory/skills/{skill.pk}/", {"text": f"{TEXT}{VERSIONS}"})
    assert [each.text for each in skill.versions.all()] == [f"{TEXT}{n}" for n in reversed(range(VERSIONS))]
    assert {tuple(each.sizes) for each in skill.versions.all()} == {("a.md", "x.png")}


def test_a_version_whose_name_is_taken_or_that_is_too_long_by_now_stays_where_it_is(
    client: Client, user: User, skill: Skill, settings: Settings
) -> None:
    client.post(f"/memory/skills/{skill.pk}/", {"text": TEXT.replace("plan-a-week", "other")})
    SkillFactory(user=user, name="plan-a-week")
    way = f"/memory/skills/{skill.pk}/restore/{skill.versions.get().pk}/"
    assert "You have a skill &#x27;plan-a-week&#x27; already." in client.post(way, follow=True).text
    settings.WAYMARK_SKILL_LENGTH = 10
    assert "at most 10 are allowed" in client.post(way, follow=True).text
    skill.refresh_from_db()
    assert skill.name == "other"
    assert skill.versions.count() == 1


def test_what_was_read_is_not_what_has_taken_its_place_since(client: Client, user: User, skill: Skill) -> None:
    read = skill.updated_at.isoformat()
    add_skill(user, zipped(NEWER), replace=True)
    said = client.post(f"/memory/skills/{skill.pk}/switch/", {"on": "1", "read": read}, follow=True).text
    assert "It says something else by now" in said
    assert not Skill.objects.get().is_on


def test_what_comes_to_replace_it_is_looked_at_like_any_other(client: Client, skill: Skill) -> None:
    for bad in (b"PK\x03\x04", b"# Plan", zipped({"s/../SKILL.md": TEXT})):
        carried = {"replace": b64encode(bad).decode()}
        assert client.post("/memory/skills/new/", carried).status_code == 422
    assert client.post("/memory/skills/new/", {"replace": "é"}).status_code == 422
    assert client.post("/memory/skills/new/", {"replace": "YQ"}).status_code == 422
    assert [file.path for file in skill.files.all()] == ["a.md", "x.png"]


def test_the_largest_that_may_come_can_replace_another(client: Client, skill: Skill, settings: Settings) -> None:
    noise = random.Random(7).randbytes(settings.WAYMARK_SKILL_BYTES - 500)
    replaced(client, zipped({"SKILL.md": TEXT, "x.bin": noise}, zipfile.ZIP_STORED))
    assert bytes(skill.files.get().content) == noise


def test_of_many_at_once_one_comes_after_the_other(user: User, skill: Skill) -> None:
    def put(n: int) -> Skill:
        try:
            return add_skill(user, f"{TEXT}{n}".encode(), replace=True)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as many:
        assert set(many.map(put, range(8))) == {skill}
    skill.refresh_from_db()
    said = [skill.text, *skill.versions.values_list("text", flat=True)]
    assert sorted(said) == sorted([FILES["s/SKILL.md"], *(f"{TEXT}{n}" for n in range(8))])


def test_it_is_saved_as_a_zip_and_deleted(client: Client, skill: Skill) -> None:
    saved = client.get(f"/memory/skills/{skill.pk}/skill.zip")
    assert 'filename="plan-a-week.zip"' in saved["Content-Disposition"]
    assert zipfile.ZipFile(io.BytesIO(saved.content)).namelist() == [
        f"plan-a-week/{n}" for n in ("SKILL.md", "a.md", "x.png")
    ]
    assert read(saved.content).files == {"a.md": b"<i>More", "x.png": b"\x89"}
    client.post(f"/memory/skills/{skill.pk}/delete/")
    assert not Skill.objects.exists()


def test_nobody_else_sees_it(client: Client, user: User) -> None:
    theirs = SkillFactory()
    change_skill(theirs, theirs.text + "More")
    version = theirs.versions.get().pk
    assert client.post(f"/memory/skills/{theirs.pk}/restore/{version}/").status_code == 404
    for deed in ("", "switch/", "agents/", "delete/", "skill.zip"):
        address = f"/memory/skills/{theirs.pk}/{deed}"
        asked = client.get(address) if deed in ("", "skill.zip") else client.post(address)
        assert asked.status_code == 404, deed
    assert client.post(f"/memory/skills/{theirs.pk}/", {"text": TEXT}).status_code == 404


def test_over_the_api(client: Client, user: User, goal: Goal) -> None:
    api, json = bearer(user), "application/json"
    upload = {"file": SimpleUploadedFile("s.zip", zipped(FILES))}
    made = client.post("/api/v1/skills", upload, headers=api).json()
    assert (made["name"], made["is_on"], made["files"]) == ("plan-a-week", False, ["a.md", "x.png"])
    assert client.post("/api/v1/skills", {"text": "# Plan"}, json, headers=api).status_code == 400
    refused = client.post("/api/v1/skills", {"text": TEXT}, json, headers=api)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "skill_taken")
    one = f"/api/v1/skills/{made['id']}"
    changes = {"text": TEXT.replace("week", "day"), "is_on": True, "off_for": [str(goal.thread_id)]}
    changed = client.patch(one, changes, json, headers=api).json()
    assert (changed["name"], changed["is_on"], changed["off_for"]) == ("plan-a-day", True, [str(goal.thread_id)])
    assert read(client.get(f"{one}/zip", headers=api).content).text == changes["text"]
    assert client.delete(one, headers=api).status_code == 204
    assert client.get("/api/v1/skills", headers=api).json()["results"] == []


def test_one_is_replaced_and_restored_over_the_api(client: Client, user: User, goal: Goal, skill: Skill) -> None:
    api, json, one = bearer(user), "application/json", f"/api/v1/skills/{skill.pk}"
    client.patch(one, {"is_on": True, "off_for": [str(goal.thread_id)]}, json, headers=api)

    def put() -> dict[str, Any]:
        upload = {"file": SimpleUploadedFile("s.zip", zipped(NEWER)), "replace": "true"}
        answer: dict[str, Any] = client.post("/api/v1/skills", upload, headers=api).json()
        return answer

    newer = put()
    assert (newer["id"], newer["is_on"], newer["files"]) == (str(skill.pk), False, ["b.md"])
    assert newer["off_for"] == [str(goal.thread_id)]
    client.patch(one, {"is_on": True}, json, headers=api)
    assert put()["is_on"], "the very same stays as it is"
    (version,) = client.get(f"{one}/versions", headers=api).json()["results"]
    assert (version["text"], version["is_on"], version["files"]) == (FILES["s/SKILL.md"], True, ["a.md", "x.png"])
    restored = client.post(f"{one}/versions/{version['id']}/restore", {}, json, headers=api).json()
    assert (restored["text"], restored["files"]) == (FILES["s/SKILL.md"], ["a.md", "x.png"])
    written = client.post("/api/v1/skills", {"text": TEXT, "replace": True}, json, headers=api).json()
    assert (written["id"], written["files"]) == (str(skill.pk), [])


def test_a_long_list_takes_no_more_queries_than_a_short_one(api: Client, user: User, goal: Goal) -> None:
    def look() -> None:
        assert api.get("/api/v1/skills").json()["results"][0]["off_for"] == [str(goal.thread_id)]

    def add(name: str) -> None:
        skill = SkillFactory(user=user, name=name)
        SkillFile.objects.create(skill=skill, path="a.md", content=b"x")
        keep_from(skill, [goal.thread_id])

    add("one")
    look()
    few = queries(look)
    for name in ("two", "three", "four"):
        add(name)
    assert queries(look) == few
