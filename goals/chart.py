"""A measured goal drawn as a trail: what was, and where it leads (mission H1). In the pixels of its SVG."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from django.utils.formats import date_format

from goals.measuring import Outlook

WIDTH, HEIGHT, HEAD, FOOT, EDGE = 288, 96, 18, 76, 6
MOST_DOTS: Final = 12
ABOVE: Final = 8
"""A value stands so far above its dot."""
ROOM: Final = 44
"""A value needs so much of the width."""


@dataclass(frozen=True, slots=True)
class Chart:
    """been, ahead: paths. fan: the polygon of what is to be expected. dots: of measurements. line: height of the
    target. aim: where that is to be reached. marks: (left, day) at the foot. values: (left, top, value) of the first
    and the last measurement, where they have room."""

    been: str
    ahead: str
    fan: str
    dots: Sequence[tuple[float, float]]
    line: float
    aim: tuple[float, float]
    marks: Sequence[tuple[float, str]]
    values: Sequence[tuple[float, float, float]]


def chart(outlook: Outlook) -> Chart | None:
    """None: nothing was measured yet."""
    target, measured, expected = outlook.target, outlook.measurements, outlook.forecast
    if not measured:
        return None
    first, last, end = measured[0], measured[-1], max(target.deadline, measured[-1].day)
    values = [each.value for each in measured] + [target.value]
    if expected:
        values += [expected.low, expected.high]
    across = _scale(first.day.toordinal(), end.toordinal(), EDGE, WIDTH - EDGE)
    down = _scale(max(values), min(values), HEAD, FOOT)
    places = [(across(each.day.toordinal()), down(each.value)) for each in measured]
    aim = (across(target.deadline.toordinal()), down(target.value))
    ahead = fan = ""
    if expected and last.day < target.deadline:
        start, at = places[-1], aim[0]
        ahead = _path([start, (at, down(expected.expected))])
        corners = [start, (at, down(expected.high)), (at, down(expected.low))]
        fan = " ".join(f"{x:g},{y:g}" for x, y in corners)
    every = max(1, len(places) // MOST_DOTS)
    return Chart(
        been=_path(places),
        ahead=ahead,
        fan=fan,
        dots=[*places[::every], places[-1]],
        line=aim[1],
        aim=aim,
        marks=_marks(across, first.day, last.day, end),
        values=[
            (x, y - ABOVE, each.value)
            for (x, y), each in zip(places, measured, strict=True)
            if each is last or (each is first and places[-1][0] - x > ROOM)
        ],
    )


def _marks(across: Callable[[float], float], first: date, last: date, end: date) -> list[tuple[float, str]]:
    """Where it begins and ends, and the last measurement where there is room; with the years when they differ."""
    style = "j M" if first.year == end.year else "j M Y"
    left = across(last.toordinal())
    middle = [last] if WIDTH * 0.3 < left < WIDTH * 0.7 else []
    return [
        (0, date_format(first, style)),
        *((left, date_format(day, style)) for day in middle),
        (WIDTH, date_format(end, style)),
    ]


def _scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    span = high - low
    return lambda value: round(begin + (value - low) / span * (end - begin), 1) if span else (begin + end) / 2


def _path(places: Sequence[tuple[float, float]]) -> str:
    return "M" + " ".join(f"{x:g} {y:g}" for x, y in places)
