"""Skills in the browser and over the API: looked at as a whole before an agent may use one (mission E1)."""

import io
import zipfile

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from pytest_django import Settings

from agents.services import assistant_of
from goals.models import Goal
from memory.models import Skill, SkillFile
from memory.skill_files import read
from memory.skills import keep_from, usable
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
    client.post(f"/memory/skills/{skill.pk}/switch/", {"on": "1"})
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") == skill
    client.post(f"/memory/skills/{skill.pk}/switch/")
    assert usable(goal.user_id, goal.thread_id, "plan-a-week") is None


def test_it_is_kept_from_single_agents(client: Client, goal: Goal, skill: Skill) -> None:
    client.post(f"/memory/skills/{skill.pk}/switch/", {"on": "1"})
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
    assert "already" in taken_in(client, text=TEXT)
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
    assert client.post("/api/v1/skills", {"text": TEXT}, json, headers=api).status_code == 400
    one = f"/api/v1/skills/{made['id']}"
    changes = {"text": TEXT.replace("week", "day"), "is_on": True, "off_for": [str(goal.thread_id)]}
    changed = client.patch(one, changes, json, headers=api).json()
    assert (changed["name"], changed["is_on"], changed["off_for"]) == ("plan-a-day", True, [str(goal.thread_id)])
    assert read(client.get(f"{one}/zip", headers=api).content).text == changes["text"]
    assert client.delete(one, headers=api).status_code == 204
    assert client.get("/api/v1/skills", headers=api).json()["results"] == []


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
