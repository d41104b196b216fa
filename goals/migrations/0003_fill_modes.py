"""What was switched off has the mode "off" now."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def fill(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    for goal in apps.get_model("goals", "Goal").objects.exclude(switched_off=[]):
        goal.modes = dict.fromkeys(goal.switched_off, "off")
        goal.save(update_fields=["modes"])


def empty(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    for goal in apps.get_model("goals", "Goal").objects.exclude(modes={}):
        goal.switched_off = [name for name, mode in goal.modes.items() if mode == "off"]
        goal.save(update_fields=["switched_off"])


class Migration(migrations.Migration):
    dependencies = [("goals", "0002_modes")]

    operations = [migrations.RunPython(fill, empty)]
