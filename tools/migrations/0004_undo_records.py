"""What was kept for an undo before there was one named the thing and not how it was."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tools", "0003_undo")]

    operations = [
        migrations.RunSQL(
            "UPDATE agent_actions SET undo = NULL WHERE NOT undo ? 'changes'",
            migrations.RunSQL.noop,
        )
    ]
