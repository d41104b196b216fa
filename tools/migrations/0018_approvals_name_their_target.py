from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tools", "0017_mcp_refresh_lease"),
    ]

    operations = [
        migrations.AddField(
            model_name="approval",
            name="target",
            field=models.CharField(
                help_text="tools.approvals.target, when it was asked; None: of before that was kept",
                max_length=80,
                null=True,
            ),
        ),
    ]
