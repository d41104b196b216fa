"""What the tests of the pages share."""

import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def client(user: User) -> Client:
    """The browser of the user, who has signed in."""
    browser = Client()
    browser.force_login(user)
    return browser
