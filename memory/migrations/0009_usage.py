from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0008_budgets")]

    operations = [
        migrations.AddField("agentrun", "written_tokens", models.PositiveBigIntegerField(db_default=0, default=0)),
    ]
