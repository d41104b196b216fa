"""The record of what agents did cannot be rewritten or thinned out, whoever writes: a statement of ours, the ORM, or
somebody by hand (threat T19). PostgreSQL keeps the rules; a statement that breaks one changes nothing.

What was called never changes. What became of it moves on as the engine writes it (agents/engine/journal, the decisions of
people), and stays once it is final. Only whether it is undone goes to and fro. Actions go with their thread alone.

Statements of the hot path set no column of the first rule, so it costs them nothing; the others are a function and no
conditions of their triggers, which each statement would read anew (120 µs of each update; the function takes 5 to 10).
"""

from django.db import migrations

CALL = """id, run_id, thread_id, user_id, step, position, call_id, tool, effect, risk, reversal, arguments, repeats_id,
created_at"""
CALL_OF = {row: ", ".join(f"{row}.{name.strip()}" for name in CALL.split(",")) for row in ("OLD", "NEW")}

CALL_STAYS = f"""
CREATE FUNCTION agent_actions_call_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF ({CALL_OF["OLD"]})
    IS DISTINCT FROM ({CALL_OF["NEW"]}) THEN
    RAISE EXCEPTION 'agent_actions %: what was called never changes', OLD.id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER agent_actions_call AFTER UPDATE OF {CALL} ON agent_actions
FOR EACH ROW EXECUTE FUNCTION agent_actions_call_stays()
"""

# Of an unknown outcome the words may change until it is settled, and with that. Whoever has settled it may delete their
# account.
MOVES_ON = """
CREATE FUNCTION agent_actions_move_on() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  was_open CONSTANT boolean := OLD.status IN ('intent', 'proposed', 'started');
  moves_on CONSTANT boolean := CASE OLD.status
    WHEN NEW.status THEN true
    WHEN 'intent' THEN NEW.status IN ('proposed', 'started', 'error', 'denied', 'cancelled')
    WHEN 'proposed' THEN NEW.status IN ('started', 'error', 'denied', 'cancelled')
    WHEN 'started' THEN NEW.status IN ('done', 'error', 'denied', 'cancelled', 'unknown')
    WHEN 'unknown' THEN NEW.status = 'done' AND NEW.resolution IN ('happened', 'checked')
      OR NEW.status = 'error' AND NEW.resolution = 'checked'
    ELSE false END;
  broken text;
BEGIN
  IF NOT moves_on THEN
    broken := 'a status only moves on';
  ELSIF (OLD.fence, OLD.started_at) IS DISTINCT FROM (NEW.fence, NEW.started_at)
    AND NOT (OLD.status IN ('intent', 'proposed') AND NEW.status = 'started') THEN
    broken := 'a call is started once';
  ELSIF OLD.finished_at IS DISTINCT FROM NEW.finished_at
    AND (OLD.finished_at IS NOT NULL OR NEW.status IN ('intent', 'proposed', 'started')) THEN
    broken := 'a call ends once';
  ELSIF NOT was_open AND OLD.undo IS DISTINCT FROM NEW.undo
    AND NOT (OLD.status = 'unknown' AND NEW.status = 'done') THEN
    broken := 'an outcome stays as it was recorded';
  ELSIF NOT was_open AND (OLD.status <> 'unknown' OR NEW.status = 'unknown' AND NEW.resolution <> '')
    AND (OLD.output, OLD.summary, OLD.error) IS DISTINCT FROM (NEW.output, NEW.summary, NEW.error) THEN
    broken := 'an outcome stays as it was recorded';
  ELSIF (OLD.resolution, OLD.resolved_at) IS DISTINCT FROM (NEW.resolution, NEW.resolved_at)
    AND NOT (OLD.status = 'unknown' AND OLD.resolution = '') THEN
    broken := 'an unknown outcome is settled once';
  ELSIF OLD.resolved_by_id IS DISTINCT FROM NEW.resolved_by_id AND NEW.resolved_by_id IS NOT NULL
    AND NOT (OLD.status = 'unknown' AND OLD.resolution = '') THEN
    broken := 'an unknown outcome is settled once';
  ELSIF OLD.undone <> NEW.undone AND OLD.status <> 'done' THEN
    broken := 'only what was done can be undone';
  ELSIF OLD.undoes_id IS DISTINCT FROM NEW.undoes_id AND NOT (OLD.undoes_id IS NULL AND OLD.status = 'started') THEN
    broken := 'an undo is of one action';
  END IF;
  IF broken IS NOT NULL THEN
    RAISE EXCEPTION 'agent_actions %: %', OLD.id, broken USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER agent_actions_course AFTER UPDATE ON agent_actions
FOR EACH ROW EXECUTE FUNCTION agent_actions_move_on()
"""

# Asked when the transaction ends, because a thread is deleted after what hangs on it.
KEPT = """
CREATE FUNCTION agent_actions_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM memory_thread WHERE id = OLD.thread_id) THEN
    RAISE EXCEPTION 'agent_actions %: an action is deleted with its thread alone', OLD.id
      USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER agent_actions_deleted AFTER DELETE ON agent_actions DEFERRABLE INITIALLY DEFERRED
FOR EACH ROW EXECUTE FUNCTION agent_actions_keep();

CREATE FUNCTION agent_actions_keep_all() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM memory_thread) THEN
    RAISE EXCEPTION 'agent_actions: actions are deleted with their threads alone' USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER agent_actions_emptied AFTER TRUNCATE ON agent_actions
FOR EACH STATEMENT EXECUTE FUNCTION agent_actions_keep_all()
"""


def without(trigger: str, function: str) -> str:
    return f"DROP TRIGGER agent_actions_{trigger} ON agent_actions; DROP FUNCTION agent_actions_{function}();"


class Migration(migrations.Migration):
    dependencies = [("tools", "0005_policy")]

    operations = [
        migrations.RunSQL(CALL_STAYS, without("call", "call_stays")),
        migrations.RunSQL(MOVES_ON, without("course", "move_on")),
        migrations.RunSQL(KEPT, without("deleted", "keep") + without("emptied", "keep_all")),
    ]
