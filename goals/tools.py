"""What the model may do to goals."""

from datetime import date, timedelta
from uuid import UUID

from django.utils import timezone
from pydantic import Field, field_validator

from agents.refusals import Refused
from goals import measuring, schedules
from goals.figures import exact
from goals.measured import Measurement, Target
from goals.restoring import MeasurementRestorer, image, measurement_image, record
from goals.schedule import Schedule
from goals.spoken_time import rule_of
from goals.when import LONGEST, Unclear
from memory.learnings import Origin
from memory.models import Author, Thread
from memory.text import clip
from tools.base import Arguments, Needs, Outcome, Risk, ToolContext, ToolError, Topic, Wording
from tools.changes import UndoRecord
from tools.rows import Writes, thread_of

LONGEST_HOURS = 30 * 24


class FollowUp(Arguments):
    intent: str = Field(
        min_length=1,
        max_length=Schedule.INTENT_LENGTH,
        description="What you will do then; you see it as it stands here.",
    )
    hours: float = Field(ge=1, le=LONGEST_HOURS, description="From now: 1 hour to 30 days.")


class ScheduleFollowUp(Writes[FollowUp]):
    name = "schedule_follow_up"
    topic = Topic.PLANS
    description = (
        "Look in again later by yourself, once: to ask how something went, or to look whether something has changed. "
        "What recurs, set_recurring_time sets."
    )
    wording = Wording("clock", "Set a follow-up", "Setting a follow-up", "Set a follow-up", "Could not set a follow-up")
    contained = True
    is_work = False
    Arguments = FollowUp

    def subject(self, arguments: FollowUp) -> str:
        return clip(arguments.intent, 80)

    def run(self, arguments: FollowUp, context: ToolContext) -> Outcome:
        at = timezone.now() + timedelta(hours=arguments.hours)
        thread = thread_of(context)
        try:
            schedule = schedules.follow_up(thread, at, arguments.intent, context.sources)
        except Refused as refused:
            raise ToolError(refused.message) from refused
        summary = clip(schedule.intent, 80)
        observation = f"You will look in {schedules.said(schedule)} (id {schedule.pk})."
        return Outcome(observation, summary, record(schedule, summary, None, image(schedule)))


class Recurring(Arguments):
    time: str = Field(
        max_length=LONGEST,
        description='Such as "every weekday 8:00", "every Monday and Thursday 18:30", "every other Friday 16:00", "on '
        'the first Monday of every month 9:00", "every 2 weeks on Monday 9:00 from 7 December '
        '2026": a date, not "today".',
    )
    intent: str = Field(
        min_length=1, max_length=Schedule.INTENT_LENGTH, description="What you will do each time; you see it as it is."
    )

    @field_validator("time")
    @classmethod
    def _is_understood(cls, time: str) -> str:
        """Before anybody is asked for their word."""
        try:
            rule_of(time, timezone.now())
        except Unclear as unclear:
            raise ValueError(str(unclear)) from unclear
        return time


class SetRecurringTime(Writes[Recurring]):
    """Each time costs its user something, so they are asked."""

    name = "set_recurring_time"
    topic = Topic.PLANS
    description = "Look in by yourself again and again, when the user asks for it. It waits for their approval."
    wording = Wording("clock", "Set a time", "Setting a time", "Set a time", "Could not set the time")
    risk = Risk.RESTRICTED
    contained = True
    is_work = False
    Arguments = Recurring

    def subject(self, arguments: Recurring) -> str:
        return clip(f"{arguments.time}: {arguments.intent}", 80)

    def run(self, arguments: Recurring, context: ToolContext) -> Outcome:
        try:
            schedule = schedules.recur(thread_of(context), arguments.time, arguments.intent, context.sources)
        except Refused as refused:
            raise ToolError(refused.message) from refused
        said = clip(f"{schedules.said(schedule)}: {schedule.intent}", 80)
        observation = f"You look in {schedules.said(schedule)} (id {schedule.pk})."
        return Outcome(observation, said, record(schedule, said, None, image(schedule)))


class OneFollowUp(Arguments):
    id: UUID = Field(description="Of the follow-up or time, as it was given when you set it.")


class CancelFollowUp(Writes[OneFollowUp]):
    name = "cancel_follow_up"
    topic = Topic.PLANS
    description = "Drop a follow-up, or a time, of yours that is not needed any more."
    wording = Wording(
        "clock", "Drop a follow-up", "Dropping a follow-up", "Dropped a follow-up", "Could not drop the follow-up"
    )
    contained = True
    is_work = False
    Arguments = OneFollowUp

    def run(self, arguments: OneFollowUp, context: ToolContext) -> Outcome:
        Thread.objects.select_for_update(no_key=True).get(pk=context.thread_id)
        mine = Schedule.objects.select_for_update().filter(thread=context.thread_id, author=Author.AGENT)
        schedule = mine.filter(pk=arguments.id, next_at__isnull=False).first()
        if schedule is None:
            raise ToolError("You have no follow-up with this id that is still to come.")
        summary = clip(schedule.intent, 80)
        undo = record(schedule, summary, image(schedule), None)
        schedules.remove(schedule)
        return Outcome("It is dropped.", summary, undo)


class Reading(Arguments):
    value: float
    day: date | None = Field(None, description="On which it was measured, as 2026-11-29; leave it out for today.")
    note: str = Field("", max_length=Measurement.NOTE_LENGTH, description="What shows it: who said or wrote it, where.")


class RecordMeasurement(Writes[Reading]):
    name = "record_measurement"
    topic = Topic.PLANS
    description = (
        "Write down a measured value of what <target> names, when the user tells you one or a file or page shows one. "
        "Never estimate."
    )
    wording = Wording(
        "bookmark",
        "Write down a measurement",
        "Writing down a measurement",
        "Measured",
        "Could not write down the measurement",
    )
    contained = True
    needs = Needs.TARGET
    Arguments = Reading

    def subject(self, arguments: Reading) -> str:
        return exact(arguments.value)

    def run(self, arguments: Reading, context: ToolContext) -> Outcome:
        thread = thread_of(context)
        target = Target.objects.filter(thread=context.thread_id).first()
        if target is None:
            raise ToolError("Nothing is measured here. The user sets a target on the page of the goal.")
        origin = Origin(context.run_id, context.action_id, context.sources)
        try:
            found = measuring.measure(thread, arguments.value, arguments.day, arguments.note, origin)
        except Refused as refused:
            raise ToolError(refused.message) from refused
        said = f"{exact(found.value)} {target.unit}".strip()
        change = MeasurementRestorer().change(str(found.pk), said, None, measurement_image(found))
        stands = measuring.outlook(context.thread_id)
        return Outcome(measuring.said(stands) if stands else "Written down.", said, UndoRecord(changes=(change,)))
