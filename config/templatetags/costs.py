"""What was spent, in words."""

from decimal import Decimal
from urllib.parse import urlsplit

from django import template
from django.utils.translation import ngettext

from agents.costs import Spending
from config.templatetags.ui import money

register = template.Library()
CENT = Decimal("0.01")


@register.filter
def spending(spent: Spending) -> str:
    """What is known, and how many calls it leaves out: `$1.20 + 3 calls of unknown cost`."""
    unknown = ngettext("%(n)s call of unknown cost", "%(n)s calls of unknown cost", spent.unpriced)
    unknown = unknown % {"n": f"{spent.unpriced:,}"}
    if not spent.unpriced:
        return money(spent.cost)
    return f"{money(spent.cost)} + {unknown}" if spent.cost else unknown


@register.filter
def share(part: Decimal, whole: Decimal) -> int:
    """Percent."""
    return round(100 * part / whole) if whole else 0


@register.filter
def per_million(price: Decimal | None) -> str:
    """A price with two digits after the point, or as many as it was set with; nothing for none."""
    if price is None:
        return ""
    cents = price.normalize()
    return f"${max(cents, cents.quantize(CENT), key=_digits):f}"


@register.filter
def host(source: str) -> str:
    """The server of an address; empty for what is none."""
    return urlsplit(source).hostname or ""


def _digits(figure: Decimal) -> int:
    return -int(figure.as_tuple().exponent)
