"""Whoever has goals gets a feed each morning; those that were there before get theirs from now on."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone


def begin(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    assistants, schedules = apps.get_model("agents", "UserAgent"), apps.get_model("goals", "Schedule")
    owners = apps.get_model("goals", "Goal").objects.values("user")
    for assistant in assistants.objects.filter(user__in=owners).iterator():
        schedules.objects.get_or_create(
            thread_id=assistant.thread_id,
            kind="feed",
            defaults={"user_id": assistant.user_id, "rule": "30 7 * * *", "next_at": timezone.now()},
        )


class Migration(migrations.Migration):
    dependencies = [("goals", "0009_feed"), ("agents", "0014_schedules")]
    operations = [migrations.RunPython(begin, migrations.RunPython.noop)]
