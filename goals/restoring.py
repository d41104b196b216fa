"""How times, targets and measurements are read and put back by an undo (mission D8)."""

from django.db.models import Exists, OuterRef, Q, TextField
from django.db.models.functions import Cast
from django.utils import timezone

from goals.measured import Measurement, Target
from goals.schedule import Schedule, ScheduleKind
from goals.schedules import next_of
from memory.models import Thread
from tools.changes import Image, UndoRecord
from tools.restoring import FIRST_CHANGED
from tools.rows import RowRestorer


class OfThread(RowRestorer):
    """Of rows that are locked after their thread by the clock and by people: an undo does it in the same order."""

    def read(self, owner: int, key: str, *, lock: bool = False) -> Image | None:
        if lock:
            holding = self.model._default_manager.filter(pk=key, user=owner).values("thread")
            Thread.objects.select_for_update(no_key=True).filter(pk__in=holding).first()
        return super().read(owner, key, lock=lock)


def image(schedule: Schedule) -> Image:
    """What somebody has set; not what became of the last time, nor when what recurs comes next, which moves by
    itself."""
    once = schedule.next_at if schedule.kind == ScheduleKind.ONCE else None
    return {
        "thread_id": str(schedule.thread_id),
        "kind": schedule.kind,
        "author": schedule.author,
        "rule": schedule.rule,
        "intent": schedule.intent,
        "sources": schedule.sources,
        "only_if_changed": schedule.only_if_changed,
        "paused": schedule.paused,
        "next_at": once.isoformat() if once else None,
    }


class ScheduleRestorer(OfThread):
    kind = "schedule"
    model = Schedule
    image = staticmethod(image)

    def refusal(self, now: Image | None, target: Image | None) -> str:
        came = now is not None and target is None and now["kind"] == ScheduleKind.ONCE and now["next_at"] is None
        return "Its time has come." if came else ""

    def settled(self) -> Q:
        """What was set and has come, or is gone, perhaps long after it came."""
        named = Schedule.objects.annotate(key=Cast("pk", TextField()))
        there = named.filter(user=OuterRef("user"), key=FIRST_CHANGED)
        to_come = there.exclude(kind=ScheduleKind.ONCE, next_at=None)
        return Q(undo__changes__0__kind=self.kind, undo__changes__0__before=None) & ~Q(Exists(to_come))

    def write(self, owner: int, key: str, image: Image | None) -> None:
        super().write(owner, key, image)
        for schedule in Schedule.objects.filter(pk=key, user=owner, kind=ScheduleKind.RECURRING):
            schedule.next_at = next_of(schedule, timezone.now())
            schedule.save(update_fields=["next_at"])


def record(schedule: Schedule, said: str, before: Image | None, after: Image | None) -> UndoRecord:
    """What was done to a schedule. said: how people know it."""
    return UndoRecord(changes=(ScheduleRestorer().change(str(schedule.pk), said, before, after),))


def target_image(target: Target) -> Image:
    return {
        "thread_id": str(target.thread_id),
        "name": target.name,
        "unit": target.unit,
        "value": target.value,
        "deadline": target.deadline.isoformat(),
    }


class TargetRestorer(OfThread):
    kind = "target"
    model = Target
    image = staticmethod(target_image)


def measurement_image(found: Measurement) -> Image:
    return {
        "thread_id": str(found.thread_id),
        "value": found.value,
        "day": found.day.isoformat(),
        "note": found.note,
        "author": found.author,
        "sources": found.sources,
        "message_id": str(found.message_id) if found.message_id else None,
        "action": str(found.action) if found.action else None,
    }


class MeasurementRestorer(OfThread):
    kind = "measurement"
    model = Measurement
    image = staticmethod(measurement_image)
