-- Who wrote what, as PostgreSQL saw it: every claim of a run, and every write that broke a rule while it happened.
CREATE SCHEMA faults;
CREATE TABLE faults.claims (
  id bigserial PRIMARY KEY, run_id uuid, fence bigint, worker text, takeover boolean,
  at timestamptz DEFAULT clock_timestamp());
CREATE INDEX ON faults.claims (run_id, id);
CREATE TABLE faults.wrongs (
  id bigserial PRIMARY KEY, run_id uuid, rule text, worker text, at timestamptz DEFAULT clock_timestamp());

CREATE FUNCTION faults.wrong(run uuid, rule text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO faults.wrongs (run_id, rule, worker) VALUES (run, rule, current_setting('application_name')) $$;

CREATE FUNCTION faults.is_stranger(run uuid) RETURNS boolean LANGUAGE sql AS $$
  SELECT current_setting('application_name') LIKE 'worker%' AND current_setting('application_name') IS DISTINCT FROM
    (SELECT worker FROM faults.claims WHERE run_id = run ORDER BY id DESC LIMIT 1) $$;

CREATE FUNCTION faults.watch_run() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.fence < OLD.fence THEN
    PERFORM faults.wrong(NEW.id, 'the fence shrank');
  END IF;
  IF OLD.status IN ('succeeded', 'failed', 'cancelled') AND NEW.status <> OLD.status THEN
    PERFORM faults.wrong(NEW.id, 'left a final state');
  END IF;
  IF NEW.lease_token IS NOT NULL AND NEW.lease_token IS DISTINCT FROM OLD.lease_token THEN
    INSERT INTO faults.claims (run_id, fence, worker, takeover)
      VALUES (NEW.id, NEW.fence, current_setting('application_name'), OLD.lease_token IS NOT NULL);
    IF NEW.fence <= OLD.fence THEN
      PERFORM faults.wrong(NEW.id, 'claimed without a higher fence');
    END IF;
    IF OLD.lease_token IS NOT NULL AND OLD.lease_until > clock_timestamp() THEN
      PERFORM faults.wrong(NEW.id, 'claimed under a lease that was valid');
    END IF;
  ELSIF NEW.status <> OLD.status AND NEW.status IN ('succeeded', 'failed', 'cancelled')
      AND faults.is_stranger(NEW.id) THEN
    PERFORM faults.wrong(NEW.id, 'ended by a worker that does not hold it');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER faults_watch AFTER UPDATE ON memory_agentrun FOR EACH ROW EXECUTE FUNCTION faults.watch_run();

-- Where a scenario may let a commit wait (ends.py, people.py): all rows are written then, and all locks are held.
CREATE FUNCTION faults.wait_to_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock_shared(7301, TG_ARGV[0]::int);
  RETURN NULL;
END $$;
CREATE TRIGGER faults_wait AFTER UPDATE ON memory_agentrun FOR EACH ROW
  WHEN (NEW.status <> OLD.status AND NEW.status IN ('waiting_approval', 'succeeded', 'failed', 'cancelled')) EXECUTE FUNCTION faults.wait_to_commit(1);
CREATE TRIGGER faults_wait AFTER INSERT ON memory_threadmessage FOR EACH ROW
  WHEN (NEW.client_message_id IS NOT NULL) EXECUTE FUNCTION faults.wait_to_commit(2);

CREATE FUNCTION faults.watch_write() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.run_id IS NOT NULL AND faults.is_stranger(NEW.run_id) THEN
    PERFORM faults.wrong(NEW.run_id, 'written by a worker that does not hold it: ' || TG_TABLE_NAME);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER faults_watch AFTER INSERT ON memory_historyentry FOR EACH ROW EXECUTE FUNCTION faults.watch_write();

-- What was approved after its reply had been answered is carried out by whoever holds the run that is live by then.
CREATE FUNCTION faults.watch_action() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF faults.is_stranger(NEW.run_id) AND NOT (
      EXISTS (SELECT FROM tools_approval WHERE action_id = NEW.id AND state = 'approved')
      AND NOT faults.is_stranger((SELECT live_run FROM memory_thread WHERE id = NEW.thread_id))) THEN
    PERFORM faults.wrong(NEW.run_id, 'written by a worker that does not hold it: agent_actions');
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER faults_watch AFTER INSERT OR UPDATE ON agent_actions
  FOR EACH ROW EXECUTE FUNCTION faults.watch_action();
