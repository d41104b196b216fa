"""What was confirmed is kept as data: the text it was kept as said the same of different parts. One name, one part."""

import django.db.models.functions.text
from django.db import migrations, models

SAYS = ("name", "role", "attributes", "evidence")
ATTRIBUTES = ("beliefs", "fears", "needs", "body")


def keep_confirmed(apps, schema_editor):
    parts = apps.get_model("tools", "Part").objects
    for part in parts.exclude(confirmed_words="").iterator():
        lines = [f"{name}: {'; '.join(texts)}" for name in ATTRIBUTES if (texts := part.attributes.get(name))]
        is_same = part.confirmed_words == "\n".join([f"{part.name} ({part.role})", *lines])
        part.confirmed = {name: getattr(part, name) for name in SAYS} if is_same else {}
        parts.filter(pk=part.pk).update(confirmed=part.confirmed)


NUMBERED = """
UPDATE tools_part SET name = left(name, 80) || ' (' || left(id::text, 8) || '-' || right(id::text, 6) || ')'
WHERE id IN (
  SELECT id FROM (
    SELECT id, row_number() OVER (PARTITION BY thread_id, upper(name) ORDER BY created_at, id) AS place FROM tools_part
  ) same WHERE place > 1);
SET CONSTRAINTS ALL IMMEDIATE;
"""


class Migration(migrations.Migration):
    dependencies = [("tools", "0014_mcp_complaints")]

    operations = [
        migrations.RenameField("part", "confirmed", "confirmed_words"),
        migrations.AddField("part", "confirmed", models.JSONField(null=True)),
        migrations.RunPython(keep_confirmed, migrations.RunPython.noop, elidable=True),
        migrations.RemoveField("part", "confirmed_words"),
        migrations.RunSQL(NUMBERED, migrations.RunSQL.noop, elidable=True),
        migrations.AddConstraint(
            "part",
            models.UniqueConstraint(
                models.F("thread"), django.db.models.functions.text.Upper("name"), name="one_part_per_name"
            ),
        ),
    ]
