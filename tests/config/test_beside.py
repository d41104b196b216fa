"""Commands beside `bin/up`, and what happens when the program changes below it."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import manage
from tests.config.running import Program, open_folder

pytestmark = pytest.mark.programs

OWNER = {"WAYMARK_OWNER_EMAIL": "owner@example.com", "WAYMARK_OWNER_PASSWORD": "a sentence of some words"}
READY = r"Open +(http://\S+)[\s\S]*Stop +Ctrl-C"
TOMORROW = "INSERT INTO django_migrations (app, name, applied) VALUES ('agents', '9999_of_tomorrow', now())"


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as path:
        yield path


def up(folder: Path) -> Program:
    data, system = str(folder / "data"), str(folder / "system")
    return Program("manage.py", "up", "--data", data, "--port", "0", WAYMARK_SYSTEM_DIR=system, **OWNER)


def beside(folder: Path, *command: str) -> Program:
    return Program("manage.py", *command, WAYMARK_DATA=str(folder / "data"))


def test_they_know_the_address_end_at_once_and_say_when_it_is_stopped(folder: Path) -> None:
    program = up(folder)
    address = program.wait_for(READY)
    owner = beside(folder, "owner")
    assert owner.end() == 0
    assert f"{address} as owner@example.com" in owner.output
    health = beside(folder, "health")
    assert health.end() == 0
    assert "couldn't stop" not in health.output
    program.process.send_signal(signal.SIGINT)
    assert program.end() == 0
    for command in (["health"], ["token", "owner@example.com"]):
        stopped = beside(folder, *command)
        assert stopped.end() == 1
        assert stopped.output == f"Waymark is not running on {folder / 'data'}. Start it with bin/up."
    assert beside(folder, "makemigrations", "--check", "--dry-run").end() == 0


@pytest.mark.parametrize(
    "command", ["token a@home.example", "chat a@home.example", "password a@home.example", "health", "shell", "check"]
)
def test_where_no_waymark_is_each_command_says_so_in_one_line(tmp_path: Path, command: str) -> None:
    program = Program("manage.py", *command.split(), WAYMARK_DATA=str(tmp_path))
    assert program.end() == 1
    assert program.output == (
        f"There is no Waymark in {tmp_path}. Start it with bin/up, or say where its data lies: WAYMARK_DATA=DIR before "
        "the command."
    )


def test_a_setting_that_is_wrong_is_one_line(tmp_path: Path) -> None:
    program = Program("manage.py", "token", "a@home.example", WAYMARK_SECRET_KEY="change-me", DATABASE_URL="nowhere")
    assert program.end() == 1
    assert "Traceback" not in program.output
    assert "The settings are not right: " in program.output


def test_a_database_that_is_away_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(arguments: list[str]) -> None:
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr("django.core.management.execute_from_command_line", ask)
    with pytest.raises(SystemExit, match=r"^The database does not answer: connection refused$"):
        manage.main(["manage.py", "token", "owner@example.com"])
    with pytest.raises(psycopg.OperationalError):
        manage.main(["manage.py", "token", "owner@example.com", "--traceback"])


def test_a_program_that_does_not_fit_the_database_does_not_start(folder: Path) -> None:
    first = up(folder)
    first.wait_for(READY)
    with psycopg.connect((folder / "data" / "database_url").read_text().strip(), autocommit=True) as database:
        database.execute(TOMORROW)
        next(process for process in first.family() if process.name() == "waymark-worker").kill()
        first.wait_for("Worker does not start: the program was changed while Waymark runs")
        assert "9999_of_tomorrow" in (folder / "data" / "logs" / "worker.log").read_text()
    by_hand = beside(folder, "worker")
    assert by_hand.end() == 1
    assert "The worker does not start, so that runs wait. The database is newer" in by_hand.output
    first.process.send_signal(signal.SIGINT)
    assert first.end() == 0
    second = up(folder)
    assert second.end() == 1
    assert "The database is newer than this program, which does not know agents 9999_of_tomorrow" in second.output
    assert "Traceback" not in second.output
