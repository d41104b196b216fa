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
        _("%(name)s: the target is %(value)s on %(day)s.")
        % {
            "name": target.name,
            "value": f"{written(target.value)}{unit}",
            "day": date_format(target.deadline, "j F Y"),
        }
    ]
    if latest := stands.latest:
        said.append(
            _("Measured last: %(value)s on %(day)s.")
            % {"value": f"{written(latest.value)}{unit}", "day": date_format(latest.day, "j F Y")}
        )
    if ahead := stands.forecast:
        said.append(
            _("At this pace it will be %(value)s then; four times out of five between %(low)s and %(high)s.")
            % {
                "value": figure(stands.rounded(ahead.expected)) + unit,
                "low": figure(stands.rounded(ahead.low)),
                "high": figure(stands.rounded(ahead.high)),
            }
        )
    return " ".join(said)


def written(value: float) -> str:
    """What a person or an agent has written down, place by place."""
    return f"{Decimal(exact(value)):,f}" if abs(value) >= 1e4 else exact(value)


def figure(value: float) -> str:
    """What was calculated: of four places, without needless ones."""
    return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def beside(goal_id: UUID, thread_id: UUID) -> str:
    """The chart at the top of a goal's panel; nothing when it is not measured."""
    stands = outlook(thread_id)
    if stands is None:
        return ""
    page = {"goal": {"pk": goal_id}, "outlook": stands, "chart": chart(stands), "words": words_of(stands)}
    return render_to_string("goals/parts/measured.html", page)
