"""Every goal has a heartbeat; those that were there before get theirs."""

from datetime import timedelta

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone

FIRST = timedelta(hours=12)


def begin(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    goals, schedules = apps.get_model("goals", "Goal"), apps.get_model("goals", "Schedule")
    beating = schedules.objects.filter(kind="heartbeat").values("thread")
    for goal in goals.objects.exclude(thread__in=beating).iterator():
        schedules.objects.create(
            thread_id=goal.thread_id,
            user_id=goal.user_id,
            kind="heartbeat",
            next_at=timezone.now() + FIRST,
            only_if_changed=True,
        )


class Migration(migrations.Migration):
    dependencies = [("goals", "0006_schedules")]
    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
