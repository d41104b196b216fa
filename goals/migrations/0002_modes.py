from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("goals", "0001_initial")]

    operations = [
        migrations.AddField(
            "goal",
            "modes",
            models.JSONField(blank=True, db_default={}, default=dict, help_text="tools.policy.Mode, by names of tools"),
        ),
    ]
