from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tools", "0013_mcp_sign_in"),
    ]

    operations = [
        migrations.AddField(
            model_name="mcpserver",
            name="said",
            field=models.TextField(blank=True, db_default="", default=""),
        ),
        migrations.AddField(
            model_name="mcpserver",
            name="said_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
