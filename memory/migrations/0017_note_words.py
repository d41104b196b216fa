from django.db import migrations

# `goals.search` searches by exactly this expression. So many characters: an index row takes only so many words.
WORDS = """
CREATE INDEX note_words ON memory_note USING gin (to_tsvector('simple', title || ' ' || left(body, 100000)))
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0016_note_versions")]
    operations = [migrations.RunSQL(WORDS, "DROP INDEX note_words")]
