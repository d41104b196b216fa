from decimal import Decimal

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0011_session_titles")]

    operations = [
        migrations.AddField(
            "agentrun",
            "held",
            models.DecimalField(
                db_default=Decimal(0),
                decimal_places=9,
                default=Decimal(0),
                help_text="Beyond what is booked: what the run may have spent at most before it asks for more",
                max_digits=18,
            ),
        ),
        migrations.AddField("agentrun", "held_tokens", models.PositiveBigIntegerField(db_default=0, default=0)),
        migrations.AddField(
            "agentrun",
            "metered",
            models.BooleanField(
                db_default=False,
                default=False,
                help_text="Budgets count it; not all that is charged need be booked yet",
            ),
        ),
        migrations.AddIndex(
            "agentrun", models.Index(condition=models.Q(("metered", True)), fields=["thread"], name="metered_runs")
        ),
    ]
