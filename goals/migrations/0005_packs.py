from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("goals", "0004_remove_switched_off")]

    operations = [
        migrations.AddField(
            "goal",
            "packs",
            models.JSONField(blank=True, db_default=[], default=list, help_text="tools.base.Pack, those switched on"),
        ),
    ]
