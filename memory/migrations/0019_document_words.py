from django.db import migrations

# `goals.search` searches by exactly this expression. So many characters: an index row takes only so many words.
WORDS = """
CREATE INDEX document_words ON memory_document USING gin (to_tsvector('simple', name || ' ' || left(text, 100000)))
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0018_documents")]
    operations = [migrations.RunSQL(WORDS, "DROP INDEX document_words")]
