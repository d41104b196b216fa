"""Where measurements lead: pace, and what is to be expected when, with how sure that is (mission H1). Pure.

A straight line through the measurements (least squares), and around it the interval in which the next measurement then
falls four times out of five, if things go on as they did.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import sqrt
from typing import Final

FEWEST: Final = 3
"""Measurements that a forecast needs, on at least two days."""

LATEST: Final = 365 * 20
"""Days after which it is not worth saying when the target will be reached."""

# Student's t, two-sided 80 percent, by degrees of freedom from 1 on; the last one for all beyond.
T_80: Final = (3.078, 1.886, 1.638, 1.533, 1.476, 1.44, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.35, 1.345, 1.341)
T_MANY: Final = 1.282

type Points = Sequence[tuple[date, float]]


@dataclass(frozen=True, slots=True)
class Forecast:
    """
    expected, low, high: at the deadline. weekly: by how much it moves in a week. needed: by how much it would have to,
    from now to the deadline; None once that is over. reached_on: when the line meets the target; None: it leads away,
    or only in decades.
    """

    expected: float
    low: float
    high: float
    weekly: float
    needed: float | None
    reached_on: date | None


def forecast(points: Points, target: float, deadline: date, today: date) -> Forecast | None:
    """None: there are too few measurements."""
    if len(points) < FEWEST or len({day for day, _value in points}) < 2:
        return None
    first = points[0][0]
    xs, ys = [(day - first).days for day, _value in points], [value for _day, value in points]
    n, middle, mean = len(xs), sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - middle) ** 2 for x in xs)
    slope = sum((x - middle) * (y - mean) for x, y in zip(xs, ys, strict=True)) / spread
    at = (deadline - first).days
    expected = mean + slope * (at - middle)
    off = sum((y - mean - slope * (x - middle)) ** 2 for x, y in zip(xs, ys, strict=True))
    error = sqrt(off / (n - 2)) * sqrt(1 + 1 / n + (at - middle) ** 2 / spread)
    margin = error * (T_80[n - 3] if n - 3 < len(T_80) else T_MANY)
    left = (deadline - today).days
    needed = (target - ys[-1]) / left * 7 if left > 0 else None
    reached = _reached(first, middle, mean, slope, target, xs[-1])
    return Forecast(expected, expected - margin, expected + margin, slope * 7, needed, reached)


def _reached(first: date, middle: float, mean: float, slope: float, target: float, last: int) -> date | None:
    if not slope:
        return None
    days = middle + (target - mean) / slope
    return first + timedelta(days=round(days)) if last <= days <= LATEST else None


def distance(value: float, begin: float, target: float) -> float:
    """How far a value is from the target; nothing once it is reached or passed, seen from where it began."""
    return max(0.0, target - value if target >= begin else value - target)
