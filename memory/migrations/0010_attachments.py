import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Now

import memory.ids

# Pictures are compressed already: PostgreSQL would try in vain, each time one is written.
AS_IT_IS = "ALTER TABLE memory_attachment ALTER content SET STORAGE EXTERNAL, ALTER thumbnail SET STORAGE EXTERNAL"


class Migration(migrations.Migration):
    dependencies = [("memory", "0009_usage")]

    operations = [
        migrations.CreateModel(
            name="Attachment",
            fields=[
                ("id", models.UUIDField(default=memory.ids.new_id, editable=False, primary_key=True, serialize=False)),
                ("place", models.PositiveSmallIntegerField()),
                ("name", models.CharField(max_length=120)),
                ("media_type", models.CharField(max_length=100)),
                ("size", models.PositiveIntegerField()),
                ("sha256", models.CharField(max_length=64)),
                ("block", models.JSONField(help_text="memory.messages.Image or File")),
                ("content", models.BinaryField()),
                ("thumbnail", models.BinaryField(null=True)),
                ("created_at", models.DateTimeField(db_default=Now())),
                (
                    "message",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="memory.threadmessage",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="attachments", to="memory.thread"
                    ),
                ),
            ],
            options={
                "ordering": ["place"],
                "constraints": [models.UniqueConstraint(fields=("message", "place"), name="one_attachment_per_place")],
            },
        ),
        migrations.RunSQL(AS_IT_IS, migrations.RunSQL.noop),
    ]
