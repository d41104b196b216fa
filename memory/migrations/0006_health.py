from django.db import migrations, models

# In READ COMMITTED each statement of a volatile function has a snapshot of its own: what is counted after the lock was
# waited for is what is true then. In a plain sub-select it would be what was true when the claim began.
HAS_SLOT = """
CREATE FUNCTION memory_has_slot(person int, this_run uuid, most int) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7301003, person);
  RETURN most > (
    SELECT count(*) FROM memory_thread t JOIN memory_agentrun r ON r.id = t.live_run
    WHERE t.user_id = person AND t.live_run IS NOT NULL AND r.id <> this_run AND r.lease_token IS NOT NULL
      AND r.status IN ('running', 'cancelling') AND r.lease_until > clock_timestamp());
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0005_guard")]

    operations = [
        migrations.AddField(
            "agentrun",
            "context_type",
            models.CharField(
                blank=True, db_default="", default="", help_text="Mode of the prompt, such as agent_check_in", max_length=40
            ),
        ),
        migrations.RunSQL(HAS_SLOT, "DROP FUNCTION memory_has_slot(int, uuid, int)"),
    ]
