"""A new kind of agent, made as docs/new-agent-kind.md says, runs through the unchanged engine (mission A5)."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.children import ROOT
from tests.llm_script import Reply
from tests.llm_server import LLMServer
from tests.processes import environment

pytestmark = [pytest.mark.programs, pytest.mark.django_db(transaction=True)]

NAME = "waymark_diary"


@pytest.fixture
def server_with_diaries() -> Iterator[dict[str, str]]:
    """The environment of a server with that kind, and a database of its own."""
    variables = environment(DJANGO_SETTINGS_MODULE="tests.diary_settings")
    address = variables["DATABASE_URL"]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
        yield variables | {"DATABASE_URL": re.sub(r"/[^/?]*(?=\?|$)", f"/{NAME}", address)}
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(NAME)))


def test_it_talks_uses_tools_and_leaves_out_those_it_must_not_have(
    server_with_diaries: dict[str, str], llm: LLMServer
) -> None:
    note = ("create_note", {"title": "A fox", "body": "By the river."})
    llm.script([Reply(calls=[note]), Reply(text="How lovely."), Reply(text="Stay dry.")])
    story = [sys.executable, "-m", "tests.diary.story", llm.url]
    ended = subprocess.run(story, cwd=ROOT, env=server_with_diaries, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    came = json.loads(ended.stdout.splitlines()[-1])
    assert came.pop("job").startswith("/diaries/")
    assert came == {
        "runs": ["succeeded", "succeeded"],
        "notes": ["A fox"],
        "named": ["/", "/since/", "/activity/", "/jobs/", "/notes/", "/search/?q=fox"],
        "deleted": [],
        "said": ["How lovely.", "Stay dry."],
    }
    asked = llm.requests[0].body
    assert "You keep a diary with the user." in asked["messages"][0]["content"]
    assert "<diary>Ada's days</diary>" in asked["messages"][0]["content"]
    offered = {tool["function"]["name"] for tool in asked["tools"]}
    assert "create_note" in offered
    assert not {"create_task", "run_cmd"} & offered


def test_its_migration_is_up_to_date(server_with_diaries: dict[str, str]) -> None:
    check = [sys.executable, "manage.py", "makemigrations", "--check", "--dry-run", "diary"]
    ended = subprocess.run(check, cwd=ROOT, env=server_with_diaries, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
