"""How a measured goal stands, for people: in words, and at the top of its panel (mission H1)."""

from decimal import Decimal
from uuid import UUID

from django.template.loader import render_to_string
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from goals.chart import chart
from goals.figures import exact
from goals.measuring import Outlook, outlook


def words_of(stands: Outlook) -> str:
    """What the chart shows, in sentences."""
    target, unit = stands.target, f" {stands.target.unit}".rstrip()
    said = [
        _("The target is %(value)s by %(day)s.")
        % {"value": f"{written(target.value)}{unit}", "day": date_format(target.deadline, "j F Y")}
    ]
    if latest := stands.latest:
        said.append(
            _("Measured last: %(value)s on %(day)s.")
            % {"value": f"{written(latest.value)}{unit}", "day": date_format(latest.day, "j F Y")}
        )
    ahead = stands.forecast
    if ahead and ahead.needed is None:
        said.append(_("That day has passed."))
    elif ahead:
        expected, low, high = (figure(stands.rounded(each)) for each in (ahead.expected, ahead.low, ahead.high))
        said.append(
            _("At this pace it will be %(value)s then.") % {"value": f"{expected}{unit}"}
            if low == high
            else _("At this pace it will be %(value)s then; four times out of five between %(low)s and %(high)s.")
            % {"value": f"{expected}{unit}", "low": low, "high": high}
        )
    return " ".join(said)


def written(value: float) -> str:
    """What a person or an agent has written down, place by place."""
    return f"{Decimal(exact(value)):,f}" if abs(value) >= 1e4 else exact(value)


def figure(value: float) -> str:
    """What was calculated: of four places, without needless ones."""
    rounded = f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return rounded.replace("-", "\N{MINUS SIGN}")


def pace(value: float) -> str:
    """A figure with its sign, also a plus; of three places."""
    rounded = f"{value:+.3g}" if abs(value) < 1e3 else f"{value:+,.0f}"
    return "0" if float(rounded.replace(",", "")) == 0 else rounded.replace("-", "\N{MINUS SIGN}")


def beside(goal_id: UUID, thread_id: UUID) -> str:
    """The chart at the top of a goal's panel; nothing when it is not measured."""
    stands = outlook(thread_id)
    if stands is None:
        return ""
    page = {"goal": {"pk": goal_id}, "outlook": stands, "chart": chart(stands), "words": words_of(stands)}
    return render_to_string("goals/parts/measured.html", page)
