import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    """When a prompt was sent last is not on record so far: each counts as sent now."""

    dependencies = [
        ('agents', '0015_prompts'),
    ]

    operations = [
        migrations.AddField(
            model_name='prompt',
            name='sent_at',
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.RemoveField(
            model_name='prompt',
            name='created_at',
        ),
        migrations.AddIndex(
            model_name='prompt',
            index=models.Index(fields=['sent_at'], name='agents_prom_sent_at_10b969_idx'),
        ),
    ]
