"""What came about before notices were told was seen where it stood: an upgrade sends nobody mail about yesterday."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.utils import timezone


def see(apps: Apps, editor: BaseDatabaseSchemaEditor | None) -> None:
    glances, now = apps.get_model("goals", "Glance"), timezone.now()
    there = apps.get_model("agents", "UserAgent").objects.exclude(user__in=glances.objects.values("user"))
    users = there.values_list("user", flat=True)
    glances.objects.bulk_create(
        [glances(user_id=user, place="home", at=now) for user in users], batch_size=500, ignore_conflicts=True
    )


class Migration(migrations.Migration):
    dependencies = [("goals", "0011_notices")]
    operations = [migrations.RunPython(see, migrations.RunPython.noop)]
