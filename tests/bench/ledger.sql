-- Notes every change of a job's status, so that one that is lost or ends twice shows.
CREATE TABLE IF NOT EXISTS ledger (
    at timestamptz DEFAULT clock_timestamp(), id bigint, queue text, was text, became text, token bigint, pid integer
);
CREATE OR REPLACE FUNCTION ledger_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO ledger (id, queue, was, became, token, pid)
    VALUES (OLD.id, OLD.queue, OLD.status, CASE WHEN TG_OP = 'DELETE' THEN 'gone' ELSE NEW.status END,
            OLD.lease_token, OLD.lease_pid);
    RETURN NULL;
END
$$;
CREATE OR REPLACE TRIGGER ledger_note AFTER UPDATE OF status OR DELETE ON worktop_jobs
    FOR EACH ROW EXECUTE FUNCTION ledger_note();
TRUNCATE ledger;
DROP TABLE IF EXISTS ledger_before;
CREATE TABLE ledger_before AS SELECT id, status FROM worktop_jobs;
