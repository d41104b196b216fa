from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0004_decisions"),
    ]

    operations = [
        migrations.AddField(
            model_name="agentrun",
            name="guard",
            field=models.JSONField(db_default={}, default=dict, help_text="agents.engine.loop_guard.LoopGuard"),
        ),
    ]
