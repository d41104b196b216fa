"""What was spent, in words."""

from decimal import Decimal

from django import template
from django.utils.translation import ngettext

from agents.costs import Spending
from config.templatetags.ui import money

register = template.Library()


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
    """A price as it was set; nothing for none."""
    return "" if price is None else f"${price.normalize():f}"
