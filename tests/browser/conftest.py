"""A real browser, and windows of it in which somebody is signed in."""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from agents.services import assistant_of
from tests.browser.access import WIDE
from tests.factories import UserFactory

# Two cores that also run a worker and a browser: an answer of many words may take longer than the usual five seconds.
expect.set_options(timeout=30_000)

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # playwright's loop runs in this thread; the tests are sync
        started = playwright.chromium.launch(executable_path=_chromium(), args=FLAGS)
        yield started
        started.close()


def _chromium() -> str | None:
    """Debian's: the one without windows, which takes a third less time, if it is there."""
    return shutil.which("chromium-headless-shell") or shutil.which("chromium")


@pytest.fixture
def user() -> User:
    """Somebody who has been welcomed already."""
    person = UserFactory.create(first_name="Ines")
    agent = assistant_of(person)
    agent.welcomed = True
    agent.save()
    return person


def signed_in(browser: Browser, site: str, user: User, **options: Any) -> BrowserContext:
    """A window in which the user has a session of the site. What moves there is drawn without a graphics card."""
    client = Client()
    client.force_login(user)
    context = browser.new_context(viewport=WIDE, base_url=site, **{"reduced_motion": "reduce"} | options)
    context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site}])
    return context
