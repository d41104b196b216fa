from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0006_health")]

    operations = [
        migrations.AddField(
            "thread",
            "news",
            models.TextField(
                blank=True, db_default="", default="", help_text="What the model is told with the next message"
            ),
        ),
    ]
