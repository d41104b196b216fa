from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("goals", "0003_fill_modes")]

    operations = [migrations.RemoveField("goal", "switched_off")]
