"""Settings: each is in the papers, and one that is wrong is named before anything starts."""

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.environment import Env
from config.mail import mailer, sender
from tests.config.running import Program, open_folder

ROOT = Path(__file__).parents[2]
# For tests and for developers.
INTERNAL = {"WAYMARK_DEBUG", "WAYMARK_RENEW_SECONDS", "WAYMARK_STATIC_ROOT", "WAYMARK_SWEEP_SECONDS"}


def test_each_setting_is_in_the_papers() -> None:
    told = (ROOT / "docs/operations.md").read_text()
    read = re.compile(r'env\.\w+\(\s*"(WAYMARK_\w+)"')
    names = {name for path in (ROOT / "config").glob("*.py") for name in read.findall(path.read_text())} - INTERNAL
    assert len(names) > 80
    missing = {name for name in names if f"`{name}`" not in told and not any(short in told for short in shorts(name))}
    assert missing == set()


def shorts(name: str) -> list[str]:
    """A name in the row of another: `…_BYTES`."""
    return [f"`…{name[place.start() :]}`" for place in re.finditer("_", name)]


@pytest.mark.parametrize("value", ["often", ""])
def test_what_is_no_number_is_named(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAYMARK_TICK_SECONDS", value)
    for read in (Env().float, Env().int):
        with pytest.raises(ImproperlyConfigured, match="WAYMARK_TICK_SECONDS is not a number"):
            read("WAYMARK_TICK_SECONDS", default=60)


@pytest.mark.parametrize(
    "address", ["mail.example:587", "smtps://mail.example", "smtp://", "smtp+tls://u:secret@mail.example:none"]
)
def test_an_address_of_a_mail_server_that_is_none_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="WAYMARK_EMAIL_URL is smtp") as refused:
        mailer(address)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("address", ["nonsense", "Waymark <waymark>"])
def test_a_sender_whom_nobody_could_answer_is_refused(address: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="WAYMARK_EMAIL_FROM"):
        sender(address)
    assert sender("Waymark <waymark@example.org>") == "Waymark <waymark@example.org>"


@pytest.mark.programs
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WAYMARK_VAPID_KEY", "A" * 43),
        ("WAYMARK_URL", "waymark.example"),
        ("WAYMARK_NOTICE_KEPT_DAYS", "0"),
        ("WAYMARK_PROMPTS_KEPT_DAYS", "-1"),
        ("WAYMARK_TICK_SECONDS", "often"),
    ],
)
def test_it_is_one_line(name: str, value: str) -> None:
    program = Program("manage.py", "check", WAYMARK_SECRET_KEY="a-secret-of-the-tests", **{name: value})
    assert program.end() == 1
    assert "Traceback" not in program.output
    assert name in program.output
    assert program.output.startswith("The settings are not right: ")


@pytest.mark.programs
def test_bin_up_says_it_without_a_traceback() -> None:
    with open_folder() as folder:
        program = Program("manage.py", "up", "--data", str(folder), "--port", "0", WAYMARK_EMAIL_FROM="nonsense")
        assert program.end() == 1
    assert "The settings are not right: WAYMARK_EMAIL_FROM" in program.output
    assert "Traceback" not in program.output
