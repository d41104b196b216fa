"""The template tags of the house."""

import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.conf import settings
from django.template import Context, Template
from django.utils import timezone

from config.templatetags.costs import per_million
from config.templatetags.ui import blaze, icon, lasted, money, when
from goals.forms import GoalForm


def test_icons_come_from_the_sprite() -> None:
    assert icon("plus") == '<svg class="icon" aria-hidden="true"><use href="/static/icons.svg#i-plus"/></svg>'
    assert 'class="icon chev"' in icon("chevron-right", "chev")
    assert " data-flip" in icon("arrow-left", flip=True)


def test_every_icon_and_blaze_that_templates_name_exists() -> None:
    sprite = (settings.BASE_DIR / "static" / "icons.svg").read_text()
    for template in (settings.BASE_DIR / "templates").rglob("*.html"):
        for name in re.findall(r'{% icon "([a-z0-9-]+)"', template.read_text()):
            assert f'id="i-{name}"' in sprite, (template, name)


def test_a_blaze_escapes_and_shows_its_state() -> None:
    assert 'data-state="working"' in blaze("peak", "working")
    assert "<script>" not in blaze("<script>")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "$0.00"), (Decimal("4.1"), "$4.10"), (Decimal("0.0032"), "$0.0032"), (Decimal("0.00001"), "<$0.0001")],
)
def test_money(value: Decimal, shown: str) -> None:
    assert money(value) == shown


@pytest.mark.parametrize(
    ("price", "shown"),
    [("3", "$3.00"), ("0.3", "$0.30"), ("0.025", "$0.025"), ("0.000001", "$0.000001"), ("1E+2", "$100.00")],
)
def test_a_price_has_two_digits_or_as_many_as_it_was_set_with(price: str, shown: str) -> None:
    assert per_million(Decimal(price)) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.42, "0.4 s"), (12, "12 s"), (185, "3 min"), (7300, "2 h"), (None, "")]
)
def test_how_long_something_took(seconds: float | None, shown: str) -> None:
    assert lasted(None if seconds is None else timedelta(seconds=seconds)) == shown


def test_when_is_said_the_short_way() -> None:
    now = timezone.localtime()
    assert when(now.replace(hour=7, minute=12)) == "07:12"
    assert when(now - timedelta(days=1)).startswith("yesterday")
    assert when(datetime(2020, 2, 3, tzinfo=UTC)) == "3 Feb 2020"
    assert when(None) == ""


def test_a_field_shows_its_error_and_points_to_it() -> None:
    form = GoalForm({"title": ""})
    form.is_valid()
    page = Template("{% load ui %}{% field form.title %}").render(Context({"form": form}))
    assert 'data-state="error"' in page
    assert 'aria-describedby="id_title-note"' in page
    assert "This field is required." in page
