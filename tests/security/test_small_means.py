"""T4, T16, T20: what one request of a stranger or of a signed-in user must not be able to do."""

import time

import pytest
from allauth.account.models import EmailAddress
from django.db import connection
from django.test import Client
from django.utils.html import escape

from agents.live import markdown
from agents.live.cells import tail_html
from agents.live.keys import NOWHERE, order
from agents.providers import errors
from agents.providers.base import Trouble, Verdict
from goals.text_history import note_history
from goals.views import model_tests
from memory.models import Note
from memory.notes import keep_version
from tests.factories import NoteFactory, UserFactory

BLANKS = 200_000


@pytest.mark.django_db
@pytest.mark.parametrize("unit", ["\n", "a\n", "a "])
def test_the_history_of_a_note_of_many_alike_does_not_hold_the_process_up(unit: str) -> None:
    note = NoteFactory(body=unit * 50_000)
    keep_version(note)
    note.body = f"b {note.body}"
    started = time.thread_time()
    assert note_history(note)[0].pieces
    assert time.thread_time() - started < 2


@pytest.mark.parametrize("blank", [" ", "\n"])
def test_blanks_in_an_answer_do_not_hold_the_process_up(blank: str) -> None:
    started = time.thread_time()
    drawn = tail_html(f"<pre><code>{blank * BLANKS}x</code></pre>")
    assert time.thread_time() - started < 1
    assert drawn.endswith('x<span class="caret"></span></code></pre>')


def test_the_caret_never_stands_inside_a_tag() -> None:
    assert tail_html('<a title="</b>">').endswith('"><span class="caret"></span>')


def test_a_huge_error_of_a_model_server_is_classified_at_once() -> None:
    body = {"error": {"message": "wrong " * 10_000_000, "code": "model " * 10_000_000}}
    started = time.thread_time()
    error = errors.from_status(400, body, {}, "")
    assert time.thread_time() - started < 2
    assert error.trouble is Trouble.REFUSED_REQUEST


@pytest.mark.parametrize("cursor", [f"{'9' * 5000}-1", f"1-{'9' * 5000}"])
def test_a_cursor_of_endless_digits_is_none(cursor: str) -> None:
    assert order(cursor) == NOWHERE


@pytest.mark.django_db
def test_staff_sign_in_where_tries_are_counted() -> None:
    answer = Client().post("/admin/login/", {"username": "a@example.org", "password": "guess"})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


@pytest.mark.django_db
def test_nobody_adds_somebody_elses_address_to_their_account() -> None:
    user, victim = UserFactory.create(), UserFactory.create()
    EmailAddress.objects.create(user=user, email=user.email, primary=True)
    EmailAddress.objects.create(user=victim, email=victim.email, primary=True)
    client = Client()
    client.force_login(user)
    client.post("/accounts/email/", {"action_add": "", "email": victim.email})
    assert list(EmailAddress.objects.filter(user=user).values_list("email", flat=True)) == [user.email]


@pytest.mark.django_db
@pytest.mark.parametrize("before", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "9999", ""])
def test_a_moment_outside_of_all_years_is_no_place_in_the_list_of_jobs(before: str) -> None:
    client = Client()
    client.force_login(UserFactory.create())
    assert client.get("/jobs/", {"before": before}).status_code == 200


@pytest.mark.django_db(transaction=True)
def test_a_slow_model_server_does_not_keep_a_connection_to_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[bool] = []

    def slow(*_: object) -> Verdict:
        held.append(connection.connection is not None)
        return Verdict(False, "no answer")

    monkeypatch.setattr(model_tests, "test_connection", slow)
    client = Client()
    client.force_login(UserFactory.create(staff=True))
    fields = {"kind": "compatible", "compatible-url": "http://127.0.0.1:9/v1", "compatible-model": "m"}
    answer = client.post("/settings/models/test/", fields)
    assert b"no answer" in b"".join(answer)
    assert held == [False]


@pytest.mark.django_db
def test_a_text_that_no_note_holds_is_not_drawn() -> None:
    client = Client()
    client.force_login(UserFactory.create())
    longest = Note.BODY_LENGTH
    assert client.post("/notes/preview/", {"body": "x" * longest}).status_code == 200
    assert client.post("/notes/preview/", {"body": "![" * longest}).status_code == 422


def test_an_endless_text_is_shown_as_it_is() -> None:
    started = time.thread_time()
    text = "<b>![" * 400_000
    assert markdown.render(text) == f'<pre tabindex="0"><code>{escape(text)}</code></pre>'
    assert len(markdown.render_stream("a\n\n" * 80_000)[0]) < 80_000
    assert time.thread_time() - started < 60
