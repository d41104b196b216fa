"""The one-time link and the pages of accounts."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from config import setup_link
from tests.factories import PASSWORD, UserFactory

pytestmark = pytest.mark.django_db


def link() -> str:
    return setup_link.make("")


def test_the_link_makes_the_owner_once_and_signs_in() -> None:
    browser = Client()
    assert browser.get(link()).status_code == 200
    answer = browser.post(link(), {"email": "Ines@home.example", "password": PASSWORD})
    assert answer["Location"] == "/welcome/"
    owner = User.objects.get()
    assert (owner.email, owner.is_superuser) == ("ines@home.example", True)
    assert browser.get("/welcome/").status_code == 200
    assert Client().post(link(), {"email": "b@home.example", "password": PASSWORD}).status_code == 410
    assert User.objects.count() == 1


def test_before_there_is_an_account_the_sign_in_page_says_how_to_make_it() -> None:
    page = Client().get("/accounts/login/").content.decode()
    assert ("Welcome back" in page, "manage.py owner --url http://testserver" in page) == (False, True)
    UserFactory.create()
    page = Client().get("/accounts/login/").content.decode()
    assert ("Welcome back" in page, "manage.py owner" in page) == (True, False)


def test_a_weak_password_is_refused_with_the_reason() -> None:
    answer = Client().post(link(), {"email": "ines@home.example", "password": "12345678"})
    assert answer.status_code == 422
    assert "too common" in answer.content.decode()
    assert not User.objects.exists()


def test_a_forged_link_opens_nothing() -> None:
    assert Client().get("/setup/owner:forged/").status_code == 410


def test_people_sign_in_by_address_and_out_again() -> None:
    user = UserFactory.create()
    browser = Client()
    page = browser.get("/accounts/login/").content.decode()
    assert "Welcome back" in page
    assert "Create an account" not in page
    wrong = browser.post("/accounts/login/", {"login": user.email, "password": "wrong"})
    assert 'role="alert"' in wrong.content.decode()
    assert browser.post("/accounts/login/", {"login": user.email, "password": PASSWORD})["Location"] == "/"
    browser.post("/accounts/logout/")
    assert browser.get("/")["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize(
    "path", ["login", "signup", "password/reset", "password/reset/done", "password/reset/key/done", "inactive"]
)
def test_each_account_page_wears_the_house_look(path: str) -> None:
    page = Client().get(f"/accounts/{path}/").content.decode()
    assert 'class="signin"' in page
    assert len(re.findall(r"<h1[ >]", page)) == 1


def test_pages_that_do_not_exist_say_so() -> None:
    answer = Client().get("/nowhere/")
    assert answer.status_code == 404
    assert "No trail leads here" in answer.content.decode()
