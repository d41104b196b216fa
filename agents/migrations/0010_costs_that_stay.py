import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0009_counting"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            "modelcall",
            "user",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddIndex(
            "modelcall",
            models.Index(condition=Q(("user__isnull", False)), fields=["user"], name="calls_of_the_deleted"),
        ),
        migrations.RemoveConstraint("modelcall", "call_of_a_run_or_a_thread"),
        migrations.AddConstraint(
            "modelcall",
            models.CheckConstraint(
                condition=Q(
                    Q(("run", None), ("thread__isnull", False), ("user", None)),
                    Q(("run__isnull", False), ("thread", None), ("user", None)),
                    Q(("run", None), ("thread", None), ("user__isnull", False)),
                    _connector="OR",
                ),
                name="call_of_one",
            ),
        ),
    ]
