from django.db import migrations, models

# What is held was on the reservations alone so far.
METERED = """
UPDATE memory_agentrun run SET metered = true, held = h.money, held_tokens = h.tokens
FROM (SELECT run_id, max(money) AS money, max(tokens) AS tokens FROM agents_reservation
  WHERE run_id IS NOT NULL GROUP BY run_id) h
WHERE run.id = h.run_id
"""

ZONES = """
UPDATE agents_budget b SET counted_in = coalesce(
  (SELECT a.time_zone FROM agents_useragent a WHERE a.user_id = b.user_id), 'Etc/UTC')
"""


class Migration(migrations.Migration):
    dependencies = [
        ("memory", "0012_metered"),
        ("agents", "0008_prices"),
    ]

    operations = [
        migrations.AddField(
            "budget",
            "counted_in",
            models.CharField(db_default="", default="", help_text="Time zone of its window", max_length=60),
        ),
        migrations.AddField(
            "modelcall",
            "charged",
            models.DecimalField(
                decimal_places=9,
                help_text="What budgets count for it; null is what is known",
                max_digits=18,
                null=True,
            ),
        ),
        migrations.AddField("modelcall", "charged_tokens", models.PositiveBigIntegerField(null=True)),
        migrations.RunSQL(METERED, migrations.RunSQL.noop),
        migrations.RunSQL(ZONES, migrations.RunSQL.noop),
    ]
