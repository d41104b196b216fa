from django.db import migrations, models

# `memory.recall` searches by exactly these expressions, from now on by the second.
BEFORE = "CREATE INDEX agenthistory_words ON memory_agenthistory USING gin (to_tsvector('simple', summary || ' ' || text))"
AFTER = """
CREATE INDEX agenthistory_words ON memory_agenthistory
  USING gin (to_tsvector('simple', title || ' ' || summary || ' ' || text))
"""
DROP = "DROP INDEX agenthistory_words"


class Migration(migrations.Migration):
    dependencies = [("memory", "0010_attachments")]

    operations = [
        migrations.AddField("agenthistory", "title", models.CharField(blank=True, default="", max_length=120)),
        migrations.RunSQL(DROP, BEFORE),
        migrations.RunSQL(AFTER, DROP),
    ]
