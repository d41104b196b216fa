"""What becomes of a mail, with a real mail server (mission H10)."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from config.mail import SMTP
from goals import notice_mail
from goals.models import Notice
from tests.factories import GoalFactory, NoticeFactory, ThreadFactory
from tests.smtp_server import MailServer, mail_server

pytestmark = pytest.mark.django_db


@pytest.fixture
def server(settings: Settings) -> Iterator[MailServer]:
    with mail_server() as server:
        options = {"host": "127.0.0.1", "port": server.port, "timeout": 10}
        settings.MAILERS = {"default": {"BACKEND": SMTP, "OPTIONS": options}}
        yield server


@pytest.fixture
def notice(user: User) -> Notice:
    made: Notice = NoticeFactory(thread=ThreadFactory(user=user), said="Grüße aus Wien")
    return made


def test_it_is_text_and_html_with_the_way_to_end_that(server: MailServer, notice: Notice) -> None:
    assert notice_mail.send(notice.user, [notice]).state == "sent"
    [letter] = server.letters
    assert letter["To"] == notice.user.email
    assert letter["Auto-Submitted"] == "auto-generated"
    assert letter["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert letter.get_content_type() == "multipart/alternative"
    plain, html = letter.get_body(("plain",)), letter.get_body(("html",))
    assert plain is not None
    assert html is not None
    assert "Grüße aus Wien" in plain.get_content()
    assert f"/notices/{notice.pk}/" in html.get_content()


def test_words_that_may_be_a_strangers_are_marked_and_link_nowhere(server: MailServer, notice: Notice) -> None:
    notice.said = "Sign in again at https://evil.example/login?next=1 now"
    notice.thread.sources = ["page.example"]
    notice_mail.send(notice.user, [notice])
    for kind in ("plain", "html"):
        part = server.letters[0].get_body((kind,))
        assert part is not None
        said = part.get_content()
        assert "Sign in again at [address left out] now" in said
        assert "Its agent has read texts of strangers:" in said
        assert "page.example" in said
        assert "evil.example" not in said


def test_a_name_is_told_in_one_line_and_only_what_can_be_seen_of_it(server: MailServer, user: User) -> None:
    """Agents name goals, too, and others have kinds of agents of their own (threat T17)."""
    goal = GoalFactory(user=user, title="Invoice \u202efdp.exe\nBcc: x")
    assert notice_mail.send(user, [NoticeFactory(user=user, thread=goal.thread)]).state == "sent"
    assert server.letters[0]["Subject"] == "Finished: Invoice fdp.exe Bcc: x"


@pytest.mark.parametrize(
    ("recipient", "letter", "state"),
    [
        ("550 no such user", "", "refused"),
        ("450 greylisted, come again", "", "later"),
        ("250 fine", "554 looks like spam", "refused"),
        ("250 fine", "452 the disk is full", "later"),
        ("250 fine", "drop", "unknown"),
    ],
)
def test_what_the_server_says_is_on_the_receipt(
    recipient: str, letter: str, state: str, server: MailServer, notice: Notice
) -> None:
    server.to_recipient, server.to_letter = recipient, letter
    outcome = notice_mail.send(notice.user, [notice])
    assert outcome.state == state
    if state != "unknown":
        assert outcome.detail == (letter or recipient)


def test_a_server_out_of_reach_is_tried_again(server: MailServer, notice: Notice) -> None:
    server.shutdown()
    server.server_close()
    assert notice_mail.send(notice.user, [notice]).state == "later"
