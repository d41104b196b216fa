"""Small pieces of the house style for templates: icons, blazes, figures, times."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django import template
from django.conf import settings
from django.contrib.auth.models import User
from django.forms import BoundField, CheckboxInput, Select
from django.templatetags.static import static
from django.utils import timezone
from django.utils.formats import date_format, time_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

register = template.Library()


@register.simple_tag
def icon(name: str, extra: str = "", flip: bool = False) -> SafeString:
    """Draw `i-<name>` of static/icons.svg. `extra` is one more class; `flip` mirrors it in right-to-left text."""
    return format_html(
        '<svg class="icon{}"{} aria-hidden="true"><use href="{}#i-{}"/></svg>',
        f" {extra}" if extra else "",
        SafeString(" data-flip") if flip else "",
        static("icons.svg"),
        name,
    )


@register.simple_tag
def logo() -> SafeString:
    return format_html('<svg class="logo" aria-hidden="true"><use href="{}#logo"/></svg>', static("icons.svg"))


@register.simple_tag
def blaze(name: str, state: str = "", size: str = "") -> SafeString:
    """Draw a goal's sign (a value of goals.models.Blaze, or `you`). State is working, waiting, paused or empty."""
    attributes = format_html(' data-state="{}"', state) if state else ""
    large = format_html(' data-size="{}"', size) if size else ""
    return format_html(
        '<span class="blaze"{}{} aria-hidden="true"><svg><use href="{}#b-{}"/></svg></span>',
        attributes,
        large,
        static("icons.svg"),
        name,
    )


@register.filter
def money(value: Decimal | float | None) -> str:
    """Show US dollars: two digits, or as many as the first two that count when it is less than a cent."""
    amount = Decimal(value or 0)
    if amount == 0 or amount >= Decimal("0.01"):
        return f"${amount:.2f}"
    return f"${amount:.2g}" if amount >= Decimal("0.0001") else "<$0.0001"


@register.filter
def when(moment: datetime | None) -> str:
    """Say a time the short way: 07:12 today, "yesterday", a weekday within six days, else the date."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    days = (timezone.localdate() - local.date()).days
    if days == 0:
        return time_format(local, "H:i")
    if days == 1:
        return _("yesterday, %(time)s") % {"time": time_format(local, "H:i")}
    return date_format(local, "l" if 1 < days < 7 else "j M" if days < 300 else "j M Y")


@register.filter
def until(start: datetime, end: datetime) -> str:
    """Say how long it was from one moment to another."""
    return lasted(end - start)


@register.filter
def lasted(span: timedelta | None) -> str:
    """Say how long something took: 0.4 s, 12 s, 3 min, 2 h."""
    if span is None:
        return ""
    seconds = span.total_seconds()
    if seconds < 10:
        return _("%(n)s s") % {"n": f"{seconds:.1f}"}
    if seconds < 60:
        return _("%(n)d s") % {"n": seconds}
    if seconds < 3600:
        return _("%(n)d min") % {"n": seconds // 60}
    return _("%(n)d h") % {"n": seconds // 3600}


@register.inclusion_tag("includes/field.html")
def field(bound: BoundField, label: str = "", hint: bool = True, example: str = "") -> dict[str, object]:
    """Draw label, input and the error or help of a form field, in the classes of the house.

    label: other words than the form's. hint: False leaves the help text out. example: stands in the empty field; a
            placeholder never repeats the label.
    """
    is_check = isinstance(bound.field.widget, CheckboxInput)
    is_select = isinstance(bound.field.widget, Select)
    attributes: dict[str, str | bool] = {"placeholder": example or False}
    if not is_check:
        attributes["class"] = "select" if is_select else "input"
    note = bound.errors[0] if bound.errors else bound.help_text if hint else ""
    attributes["aria-describedby"] = f"{bound.auto_id}-note" if note else False
    if is_first_mistake(bound):
        attributes["autofocus"] = True
    return {
        "field": bound,
        "label": label or bound.label,
        "note": note,
        "is_check": is_check,
        "widget": bound.as_widget(attrs=attributes),
    }


@register.filter
def is_first_mistake(bound: BoundField) -> bool:
    """Whether to go on at this field of a form that was refused: what is wrong may be far below the top of its page."""
    return bool(bound.errors) and bound.name == next(name for name in bound.form.fields if name in bound.form.errors)


@register.simple_tag
def signup_open() -> bool:
    return bool(settings.WAYMARK_SIGNUP_OPEN)


@register.simple_tag
def nobody_yet() -> bool:
    """Whether the owner's account is still to be made."""
    return not User.objects.exists()


@register.simple_tag
def sends_mail() -> bool:
    return bool(settings.SENDS_MAIL)


@register.filter
def at(mapping: Mapping[Any, Any], key: object) -> object:
    """Look a key up that is itself a variable."""
    return mapping.get(key)
