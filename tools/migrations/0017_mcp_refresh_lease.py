from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tools", "0016_parts_as_confirmed"),
    ]

    operations = [
        migrations.AddField(
            model_name="mcpsignin",
            name="refreshing_until",
            field=models.DateTimeField(null=True),
        ),
    ]
