"""Targets and measurements: every write that a face or a tool may ask for, and where they lead (mission H1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from agents.budgets.counting import zone_of
from agents.refusals import Refused
from goals.figures import exact, measured_lines
from goals.forecast import Forecast, distance, forecast
from goals.measured import Measurement, Target
from memory.hot import load_all
from memory.learnings import Origin, answered
from memory.marks import names
from memory.models import Author, Thread
from memory.text import clean

MOST: Final = 5_000
"""Measurements of one goal, and lines of one import."""

LARGEST: Final = 1e12


@dataclass(frozen=True, slots=True)
class Outlook:
    """How a measured goal stands. forecast: None as long as there are too few measurements."""

    target: Target
    measurements: Sequence[Measurement]
    forecast: Forecast | None

    @property
    def latest(self) -> Measurement | None:
        return self.measurements[-1] if self.measurements else None

    @property
    def expected(self) -> float | None:
        """What is forecast, as people are told it."""
        return self.rounded(self.forecast.expected) if self.forecast else None

    def rounded(self, value: float) -> float:
        """A calculated value, no finer than what was measured."""
        exact = (Decimal(repr(each.value)).normalize().as_tuple().exponent for each in self.measurements)
        places = max((-each for each in exact if isinstance(each, int)), default=0)
        return round(value, max(places, 0)) + 0.0  # no minus before a zero


def set_target(thread: Thread, name: str, value: float, deadline: date, unit: str = "") -> Target:
    """Say what is to be reached until when, or say it otherwise; measurements stay.

    Raises:
        Refused: a name or a value is missing or too long, or the deadline has passed.
    """
    name, unit = " ".join(clean(name).split()), " ".join(clean(unit).split())
    if not name or len(name) > Target.NAME_LENGTH:
        raise Refused("name", _("Say in at most %(n)d characters what is measured.") % {"n": Target.NAME_LENGTH})
    if len(unit) > Target.UNIT_LENGTH:
        raise Refused("unit", _("A unit has at most %(n)d characters.") % {"n": Target.UNIT_LENGTH})
    if deadline <= today_of(thread.user_id):
        raise Refused("deadline", _("The day by which it is to be reached lies ahead."))
    said = {"name": name, "unit": unit, "value": _figure(value), "deadline": deadline}
    with transaction.atomic():
        target, _made = Target.objects.update_or_create(
            thread=thread,
            defaults={**said, "best": None, "flat": 0},
            create_defaults={**said, "user_id": thread.user_id},
        )
    return target


def drop_target(thread_id: UUID) -> None:
    """It is not measured any more; what was measured stays."""
    Target.objects.filter(thread=thread_id).delete()


def measure(
    thread: Thread, value: float, day: date | None = None, note: str = "", origin: Origin | None = None
) -> Measurement:
    """
    Args:
        day: on which it was measured; None is today.
        note: what shows it, or was special about it.
        origin: None: its person has measured it.

    Raises:
        Refused: no figure, a day that lies ahead, a note that is too long, or too many.
    """
    today = today_of(thread.user_id)
    made = _measurement(thread, value, day or today, note, today)
    if origin:
        made.author, made.sources = Author.AGENT, names(origin.sources)
        made.message, made.action = answered(thread.pk, origin.run), origin.action
    with transaction.atomic():
        _make_sure_of_room(thread, 1)
        made.save(force_insert=True)
    return made


def take_in(thread: Thread, text: str) -> list[Measurement]:
    """Take in measurements, as `figures.measured_lines` reads them; all or none.

    Raises:
        Refused: a line is none; it is named.
    """
    today = today_of(thread.user_id)
    made = [_measurement(thread, *each, today) for each in measured_lines(text)]
    for n, each in enumerate(made):
        each.created_at = Now() + timedelta(microseconds=n)  # those of one day stay in the order of their lines
    with transaction.atomic():
        _make_sure_of_room(thread, len(made))
        return Measurement.objects.bulk_create(made)


def _measurement(thread: Thread, value: float, day: date, note: str, today: date) -> Measurement:
    """What its person has measured, not saved yet."""
    note = clean(note).strip()
    if day > today:
        raise Refused("day", _("%(day)s lies ahead.") % {"day": date_format(day, "j F Y")})
    if len(note) > Measurement.NOTE_LENGTH:
        raise Refused("note", _("A note has at most %(n)d characters.") % {"n": Measurement.NOTE_LENGTH})
    return Measurement(user_id=thread.user_id, thread=thread, value=_figure(value), day=day, note=note)


def _make_sure_of_room(thread: Thread, more: int) -> None:
    """Within the transaction that fills it: who measures at the same time waits, and counts these."""
    Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
    if Measurement.objects.filter(thread=thread).count() + more > MOST:
        raise Refused("too_many", _("At most %(n)d measurements are kept.") % {"n": MOST})


def outlook(thread_id: UUID) -> Outlook | None:
    """None: it is not measured."""
    found = load_all(Target, "x.thread_id = %(thread)s", {"thread": thread_id})  # before every run
    if not found:
        return None
    target = found[0]
    measurements = list(Measurement.objects.filter(thread=thread_id))
    points = [(each.day, each.value) for each in measurements]
    today = today_of(target.user_id)
    return Outlook(target, measurements, forecast(points, target.value, target.deadline, today))


def said(outlook: Outlook) -> str:
    """How it stands, for the agent: facts only."""
    target, unit = outlook.target, f" {outlook.target.unit}".rstrip()
    lines = [f"{target.name}: {exact(target.value)}{unit} by {target.deadline.isoformat()}."]
    if latest := outlook.latest:
        lines.append(f"Measured last: {exact(latest.value)}{unit} on {latest.day.isoformat()}.")
    else:
        lines.append("Nothing measured yet.")
    if ahead := outlook.forecast:
        lines.append(
            f"Pace: {ahead.weekly:+.3g}{unit} a week"
            + (f"; needed: {ahead.needed:+.3g}." if ahead.needed is not None else ".")
        )
        lines.append(f"Forecast for the deadline: {ahead.expected:.4g} ({ahead.low:.4g} to {ahead.high:.4g}).")
    return "\n".join(lines)


def count_check_in(thread_id: UUID) -> bool:
    """Note that a check-in found the goal as it is. Within a transaction; True when the strategy is to be reviewed:
    once, after so many that found it no nearer."""
    target = Target.objects.select_for_update().filter(thread=thread_id).first()
    measured = list(Measurement.objects.filter(thread=thread_id).values_list("value", flat=True))
    if target is None:
        return False
    now = distance(measured[-1], measured[0], target.value) if measured else None
    nearer = now is not None and (now == 0 or target.best is None or now < target.best)
    target.best = now if nearer else target.best
    target.flat = 0 if nearer else target.flat + 1
    target.save(update_fields=["best", "flat"])
    return bool(target.flat == settings.WAYMARK_FLAT_CHECK_INS)


def today_of(user_id: int) -> date:
    now: datetime = timezone.now().astimezone(zone_of(user_id))
    return now.date()


def _figure(value: float) -> float:
    if not isfinite(value) or abs(value) > LARGEST:
        raise Refused("value", _("This is not a figure that can be kept."))
    return value
