"""What people do themselves to times, targets and measurements: on record as actions of theirs, told to the agent, and
with a way back (missions A12, D7 and H1)."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Final

from django.db import transaction

from goals import measuring, schedules
from goals.measured import Measurement, Target
from goals.restoring import (
    MeasurementRestorer,
    ScheduleRestorer,
    TargetRestorer,
    image,
    measurement_image,
    target_image,
)
from goals.schedule import Schedule
from memory.models import Thread
from memory.text import clip
from tools.changes import Change, UndoRecord
from tools.deeds import by_person

MOST_UNDONE: Final = 200
"""Measurements of one import that an undo takes back: what it would need is kept in one row."""


def set_time(thread: Thread, time: str, intent: str = "", *, only_if_changed: bool = False) -> Schedule:
    """Raises: Refused, as `schedules.add`."""
    with transaction.atomic():
        made = schedules.add(thread, time, intent, only_if_changed=only_if_changed)
        change = ScheduleRestorer().change(str(made.pk), _named(made), None, image(made))
        _record(thread, "set_time", [change], "has set a time for you")
    return made


def change_time(
    schedule: Schedule, *, time: str | None = None, intent: str | None = None, only_if_changed: bool | None = None
) -> None:
    """Raises: Refused, as `schedules.change`."""

    def change(schedule: Schedule) -> None:
        schedules.change(schedule, time=time, intent=intent, only_if_changed=only_if_changed)

    _to_time(schedule, change, "change_time", "has changed a time of yours")


def pause_time(schedule: Schedule) -> None:
    _to_time(schedule, schedules.pause, "pause_time", "has paused a time of yours")


def resume_time(schedule: Schedule) -> None:
    _to_time(schedule, schedules.resume, "resume_time", "has resumed a time of yours")


def delete_time(schedule: Schedule) -> None:
    _to_time(schedule, schedules.remove, "delete_time", "has deleted a time of yours")


def _to_time(schedule: Schedule, do: Callable[[Schedule], None], tool: str, news: str) -> None:
    """One that has gone meanwhile stays gone, and one that stays as it was is not worth a word."""
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).filter(pk=schedule.thread_id).first()  # the one order of locks
        found = Schedule.objects.select_for_update(of=("self",)).select_related("thread").filter(pk=schedule.pk).first()
        if found is None:
            return
        before, name = image(found), _named(found)
        do(found)
        now = Schedule.objects.filter(pk=schedule.pk).first()
        after = image(now) if now else None
        if after != before:
            change = ScheduleRestorer().change(str(schedule.pk), _named(now) if now else name, before, after)
            _record(found.thread, tool, [change], news)


def _named(schedule: Schedule) -> str:
    said = schedules.said(schedule)
    return clip(f"{said}: {schedule.intent}" if schedule.intent else said, 80)


def set_target(thread: Thread, name: str, value: float, deadline: date, unit: str = "") -> None:
    """Raises: Refused, as `measuring.set_target`."""
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
        before = Target.objects.select_for_update().filter(thread=thread).first()
        was = target_image(before) if before else None
        target = measuring.set_target(thread, name, value, deadline, unit)
        now = target_image(Target.objects.get(pk=target.pk))
        if now != was:
            change = TargetRestorer().change(str(target.pk), str(target), was, now)
            _record(thread, "set_target", [change], "has set the target")


def drop_target(thread: Thread) -> None:
    """It is not measured any more; what was measured stays."""
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).get(pk=thread.pk)
        target = Target.objects.select_for_update().filter(thread=thread).first()
        if target is not None:
            change = TargetRestorer().change(str(target.pk), str(target), target_image(target), None)
            measuring.drop_target(thread.pk)
            _record(thread, "drop_target", [change], "has dropped the target")


def measure(thread: Thread, value: float, day: date | None = None, note: str = "") -> Measurement:
    """Raises: Refused, as `measuring.measure`."""
    with transaction.atomic():
        made = measuring.measure(thread, value, day, note)
        _record(thread, "add_measurements", _made([made]), "has measured")
    return made


def take_in(thread: Thread, text: str) -> int:
    """Returns how many. Raises: Refused, as `measuring.take_in`."""
    with transaction.atomic():
        made = measuring.take_in(thread, text)
        if made:
            _record(thread, "add_measurements", _made(made), "has measured")
    return len(made)


def delete_measurement(found: Measurement) -> None:
    with transaction.atomic():
        Thread.objects.select_for_update(no_key=True).filter(pk=found.thread_id).first()
        change = MeasurementRestorer().change(str(found.pk), str(found), measurement_image(found), None)
        if Measurement.objects.filter(pk=found.pk).delete()[0]:
            _record(found.thread, "delete_measurement", [change], "has deleted what was measured")


def _made(made: Sequence[Measurement]) -> list[Change]:
    restorer = MeasurementRestorer()
    return [restorer.change(str(each.pk), str(each), None, measurement_image(each)) for each in made]


def _record(thread: Thread, tool: str, changes: Sequence[Change], news: str) -> None:
    """Of what changed; its name is that of the first thing, with how many more there are."""
    name, more = changes[0].name, len(changes) - 1
    undo = UndoRecord(changes=tuple(changes))
    if more >= MOST_UNDONE:
        undo = UndoRecord(lasting=("So many measurements are deleted one by one.",))
    by_person(thread, tool, {"id": changes[0].id}, f"{name} and {more} more" if more else name, undo, news)
