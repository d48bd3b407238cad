"""Sketched presets of real libraries, with the least of their tables: the form of a preset must hold all of them.

Each has one job that is due for 60 s and one that is claimed and 30 s past its lease (where there is a lease).
"""

from __future__ import annotations

from typing import NamedTuple


class Sketch(NamedTuple):
    preset: str
    tables: str
    stuck: int = 1
    done: int = 0
    failed: int = 0
    holder: str = ""  # what the running job's holder must be: "host pid"
    lock: int | None = None  # an advisory lock that a session must hold


def _preset(name: str, claim: str, time: str, tables: str, rest: str) -> str:
    listed = ", ".join(f'"{table}"' for table in tables.split())
    return f'name = "{name}"\ntitle = "{name}"\nclaim = "{claim}"\ntime = "{time}"\ntables = [{listed}]\n{rest}'


SKETCHES = {
    # a status, epoch milliseconds, text ids, nothing that tells of life
    "dbos": Sketch(
        _preset("dbos", "status", "epoch-ms", "workflow_status", """
from = "{schema}.workflow_status w"
id_type = "text"
[fields]
id = "w.workflow_uuid"
queue = "w.queue_name"
type = "w.name"
created = "w.created_at"
run_after = "w.created_at"
started = "w.started_at_epoch_ms"
finished = "w.completed_at"
error = "w.error"
[states.waiting]
where = "w.status = 'ENQUEUED'"
[states.scheduled]
where = "w.status = 'DELAYED'"
fields = { run_after = "w.delay_until_epoch_ms" }
[states.running]
where = "w.status = 'PENDING'"
[states.done]
where = "w.status = 'SUCCESS'"
[states.failed]
where = "w.status IN ('ERROR', 'CANCELLED')"
[holder]
kind = "columns"
text = "w.executor_id"
[fence]
token = "w.owner_xid"
late_finish = "rejected"
"""),
        """CREATE TABLE workflow_status (workflow_uuid text PRIMARY KEY, status text, name text, queue_name text,
             error text, executor_id text, owner_xid text, created_at bigint, started_at_epoch_ms bigint,
             completed_at bigint, delay_until_epoch_ms bigint);
           INSERT INTO workflow_status (workflow_uuid, status, name, queue_name, created_at, completed_at)
             VALUES ('w', 'ENQUEUED', 't', 'q', 1000 * (extract(epoch FROM now()) - 60), NULL),
                    ('r', 'PENDING', 't', 'q', 1000 * (extract(epoch FROM now()) - 60), NULL),
                    ('d', 'SUCCESS', 't', 'q', 0, 1000 * (extract(epoch FROM now()) - 10));""",
        stuck=0, done=1,
    ),
    # a status, a row of a worker that may be gone, NULL that means "now"
    "procrastinate": Sketch(
        _preset("procrastinate", "status", "timestamptz", "procrastinate_jobs procrastinate_workers", """
from = "{schema}.procrastinate_jobs j"
[fields]
id = "j.id"
queue = "j.queue_name"
type = "j.task_name"
attempts = "j.attempts"
priority = "j.priority"
run_after = "j.scheduled_at"
payload = "j.args"
[states.waiting]
where = "j.status = 'todo'"
due = "(j.scheduled_at IS NULL OR j.scheduled_at <= {now})"
[states.running]
where = "j.status = 'doing'"
from = "{schema}.procrastinate_jobs j LEFT JOIN {schema}.procrastinate_workers w ON w.id = j.worker_id"
[states.failed]
where = "j.status = 'failed'"
[holder]
kind = "worker-table"
text = "w.id"
[lease]
kind = "worker-heartbeat"
at = "w.last_heartbeat"
timeout = 30
"""),
        """CREATE TYPE job_status AS ENUM ('todo', 'doing', 'succeeded', 'failed');
           CREATE TABLE procrastinate_workers (id bigint PRIMARY KEY, last_heartbeat timestamptz);
           CREATE TABLE procrastinate_jobs (id bigint PRIMARY KEY, queue_name varchar(128), task_name varchar(128),
             priority int DEFAULT 0, attempts int DEFAULT 0, status job_status, scheduled_at timestamptz,
             worker_id bigint, args jsonb DEFAULT '{}');
           INSERT INTO procrastinate_workers VALUES (7, now() - interval '60 s');
           INSERT INTO procrastinate_jobs (id, queue_name, task_name, status, scheduled_at, worker_id)
             VALUES (1, 'q', 't', 'todo', now() - interval '60 s', NULL), (2, 'q', 't', 'doing', NULL, 7),
                    (3, 'q', 't', 'failed', NULL, NULL);""",
        failed=1,
    ),
    # a status, uuids, a sentinel: run_after 9999-01-01 means now
    "django-tasks": Sketch(
        _preset("django-tasks", "status", "timestamptz", "dbtaskresult", """
from = "{schema}.dbtaskresult t"
id_type = "uuid"
[fields]
id = "t.id"
queue = "t.queue_name"
type = "t.task_path"
created = "t.enqueued_at"
started = "t.started_at"
finished = "t.finished_at"
[fields.run_after]
sql = "t.run_after"
unset = ["'9999-01-01 00:00:00+00'"]
[states.waiting]
where = "t.status = 'READY'"
due = "(t.run_after <= {now} OR t.run_after = '9999-01-01 00:00:00+00')"
[states.running]
where = "t.status = 'RUNNING'"
[states.done]
where = "t.status = 'SUCCESSFUL'"
[holder]
kind = "columns"
text = "t.worker_ids->>-1"
"""),
        """CREATE TABLE dbtaskresult (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), status varchar(10),
             queue_name varchar(32), task_path text DEFAULT 't', run_after timestamptz DEFAULT '9999-01-01 00:00:00+00',
             enqueued_at timestamptz, started_at timestamptz, finished_at timestamptz,
             worker_ids jsonb DEFAULT '["a"]');
           INSERT INTO dbtaskresult (status, queue_name, enqueued_at, finished_at)
             VALUES ('READY', 'q', now() - interval '60 s', NULL), ('RUNNING', 'q', now(), NULL),
                    ('SUCCESSFUL', 'q', now(), now() - interval '10 s');""",
        stuck=0, done=1,
    ),
    # lock columns, epoch seconds; what failed is in a table of its own, with another time
    "laravel": Sketch(
        _preset("laravel", "lock-columns", "epoch-s", "jobs failed_jobs", """
from = "{schema}.jobs j"
[fields]
id = "j.id"
queue = "j.queue"
type = "j.payload::jsonb->>'displayName'"
attempts = "j.attempts"
run_after = "j.available_at"
created = "j.created_at"
started = "j.reserved_at"
payload = "j.payload"
[states.waiting]
where = "j.reserved_at IS NULL"
due = "j.available_at <= {now}"
[states.running]
where = "j.reserved_at IS NOT NULL"
[states.failed]
where = "true"
from = "{schema}.failed_jobs f"
[states.failed.fields]
id = "f.id"
queue = "f.queue"
type = "f.payload::jsonb->>'displayName'"
attempts = "NULL"
run_after = "NULL::bigint"
created = "NULL::bigint"
started = "NULL::bigint"
error = "f.exception"
payload = "f.payload"
finished = { sql = "f.failed_at", time = "naive-utc" }
[lease]
kind = "claimed"
at = "j.reserved_at"
timeout = 90
"""),
        """CREATE TABLE jobs (id bigserial PRIMARY KEY, queue varchar(255), payload text DEFAULT '{"displayName": "t"}',
             attempts smallint DEFAULT 1, reserved_at integer, available_at integer, created_at integer DEFAULT 0);
           CREATE TABLE failed_jobs (id bigserial PRIMARY KEY, queue text, payload text DEFAULT '{"name": "50%"}',
             exception text, failed_at timestamp(0));
           INSERT INTO jobs (queue, available_at, reserved_at) VALUES ('q', extract(epoch FROM now()) - 60, NULL),
             ('q', 0, extract(epoch FROM now()) - 120);
           INSERT INTO failed_jobs (queue, failed_at) VALUES ('q', timezone('UTC', now()) - interval '10 s');""",
        failed=1,
    ),
    # lock columns, naive times in the application's own zone
    "symfony": Sketch(
        _preset("symfony", "lock-columns", "naive-zone", "messenger_messages", """
zone = "America/New_York"
from = "{schema}.messenger_messages m"
[fields]
id = "m.id"
queue = "m.queue_name"
type = "substring(m.headers FROM '\\"type\\":\\"([^\\"]*)\\"')"
run_after = "m.available_at"
created = "m.created_at"
started = "m.delivered_at"
payload = "m.body"
[states.waiting]
where = "m.delivered_at IS NULL AND m.queue_name <> 'failed'"
due = "m.available_at <= {now}"
[states.running]
where = "m.delivered_at IS NOT NULL"
[states.failed]
where = "m.queue_name = 'failed'"
[lease]
kind = "claimed"
at = "m.delivered_at"
timeout = 3600
"""),
        """CREATE TABLE messenger_messages (id bigserial PRIMARY KEY, body text DEFAULT '{}', headers text
             DEFAULT '{"type":"t"}', queue_name varchar(190), created_at timestamp(0), available_at timestamp(0),
             delivered_at timestamp(0));
           INSERT INTO messenger_messages (queue_name, available_at, delivered_at)
             VALUES ('q', timezone('America/New_York', now()) - interval '60 s', NULL),
                    ('q', timezone('America/New_York', now()),
              timezone('America/New_York', now()) - interval '3630 s');""",
    ),
    # lock columns, naive UTC, host and pid in one text
    "delayed-job": Sketch(
        _preset("delayed-job", "lock-columns", "naive-utc", "delayed_jobs", """
from = "{schema}.delayed_jobs j"
[fields]
id = "j.id"
queue = "coalesce(j.queue, '')"
attempts = "j.attempts"
run_after = "j.run_at"
started = "j.locked_at"
error = "j.last_error"
[states.waiting]
where = "j.locked_at IS NULL AND j.failed_at IS NULL"
due = "j.run_at <= {now}"
[states.running]
where = "j.locked_at IS NOT NULL AND j.failed_at IS NULL"
[states.failed]
where = "j.failed_at IS NOT NULL"
fields = { finished = "j.failed_at" }
[holder]
kind = "text"
text = "j.locked_by"
pattern = 'host:(?P<host>\\S+) pid:(?P<pid>\\d+)'
[lease]
kind = "claimed"
at = "j.locked_at"
timeout = 14400
[fence]
token = "j.locked_by"
"""),
        """CREATE TABLE delayed_jobs (id bigserial PRIMARY KEY, queue varchar DEFAULT 'q', attempts int DEFAULT 0,
             run_at timestamp(6), locked_at timestamp(6), locked_by varchar, failed_at timestamp(6), last_error text);
           INSERT INTO delayed_jobs (run_at, locked_at, locked_by, failed_at) VALUES
             (timezone('UTC', now()) - interval '60 s', NULL, NULL, NULL),
             (timezone('UTC', now()), timezone('UTC', now()) - interval '14430 s',
              'delayed_job host:web1 pid:4711', NULL),
             (timezone('UTC', now()), NULL, NULL, timezone('UTC', now()));""",
        failed=1, holder="web1 4711",
    ),
    # a future visibility time means claimed; what is done is in another table
    "django-q2": Sketch(
        _preset("django-q2", "visibility", "timestamptz", "ormq task", """
from = "{schema}.ormq o"
[fields]
id = "o.id"
queue = "o.key"
payload = "o.payload"
[states.waiting]
where = "o.lock <= {now} - interval '1 minute'"
fields = { run_after = "o.lock" }
[states.running]
where = "o.lock > {now} - interval '1 minute'"
[states.done]
where = "t.success"
from = "{schema}.task t"
[states.done.fields]
id = "t.id"
queue = "t.cluster"
type = "t.func"
started = "t.started"
finished = "t.stopped"
payload = "t.args"
[lease]
kind = "expiry"
at = "o.lock"
"""),
        """CREATE TABLE ormq (id bigserial PRIMARY KEY, key varchar(100), payload text, lock timestamptz);
           CREATE TABLE task (id bigserial PRIMARY KEY, cluster varchar(100), func varchar(256), args text,
             started timestamptz, stopped timestamptz, success boolean);
           INSERT INTO ormq (key, lock) VALUES ('q', now() - interval '60 s'), ('q', now() - interval '30 s');
           INSERT INTO task (cluster, func, stopped, success) VALUES ('q', 'f', now() - interval '10 s', true);""",
        done=1,
    ),
    # a table per queue, and a visibility time
    "pgmq": Sketch(
        _preset("pgmq", "visibility", "timestamptz", "meta", """
from = "{table} m"
[per_queue]
prefix = "q_"
queues = "SELECT queue_name FROM {schema}.meta ORDER BY 1"
[fields]
id = "m.msg_id"
queue = "m.queue"
attempts = "m.read_ct"
run_after = "m.vt"
created = "m.enqueued_at"
payload = "m.message"
[states.waiting]
where = "m.vt <= {now} AND m.read_ct = 0"
[states.running]
where = "m.read_ct > 0"
[lease]
kind = "expiry"
at = "m.vt"
"""),
        """CREATE TABLE meta (queue_name text);
           INSERT INTO meta VALUES ('q'), ('other');
           CREATE TABLE q_q (msg_id bigserial PRIMARY KEY, read_ct int DEFAULT 0, enqueued_at timestamptz DEFAULT now(),
             vt timestamptz, message jsonb DEFAULT '{}');
           CREATE TABLE q_other (LIKE q_q INCLUDING ALL);
           INSERT INTO q_q (read_ct, vt) VALUES (0, now() - interval '60 s'), (1, now() - interval '30 s');""",
    ),
    # a row in another table, naive UTC, the worker's row tells of life, host and pid
    "solid-queue": Sketch(
        _preset("solid-queue", "claim-table", "naive-utc", "jobs ready claimed failed processes", """
from = "{schema}.jobs j"
[fields]
id = "j.id"
queue = "j.queue_name"
type = "j.class_name"
created = "j.created_at"
run_after = "coalesce(j.scheduled_at, j.created_at)"
finished = "j.finished_at"
payload = "j.arguments"
[states.waiting]
from = "{schema}.ready r JOIN {schema}.jobs j ON j.id = r.job_id"
where = "true"
[states.running]
from = '''{schema}.claimed c JOIN {schema}.jobs j ON j.id = c.job_id
  LEFT JOIN {schema}.processes p ON p.id = c.process_id'''
where = "true"
fields = { started = "c.created_at" }
[states.done]
where = "j.finished_at IS NOT NULL"
[states.failed]
from = "{schema}.failed f JOIN {schema}.jobs j ON j.id = f.job_id"
where = "true"
fields = { finished = "f.created_at", error = "f.error" }
[holder]
kind = "worker-table"
host = "p.hostname"
pid = "p.pid"
[lease]
kind = "worker-heartbeat"
at = "p.last_heartbeat_at"
timeout = 300
[fence]
token = "c.id"
late_finish = "rejected"
"""),
        """CREATE TABLE jobs (id bigserial PRIMARY KEY, queue_name varchar, class_name varchar, arguments text,
             scheduled_at timestamp(6), finished_at timestamp(6), created_at timestamp(6));
           CREATE TABLE ready (id bigserial PRIMARY KEY, job_id bigint);
           CREATE TABLE claimed (id bigserial PRIMARY KEY, job_id bigint, process_id bigint, created_at timestamp(6));
           CREATE TABLE failed (id bigserial PRIMARY KEY, job_id bigint, error text, created_at timestamp(6));
           CREATE TABLE processes (id bigserial PRIMARY KEY, last_heartbeat_at timestamp(6), pid int, hostname varchar);
           INSERT INTO jobs (queue_name, class_name, created_at)
             SELECT 'q', 't', timezone('UTC', now()) - interval '60 s' FROM generate_series(1, 3);
           INSERT INTO processes (last_heartbeat_at, pid, hostname)
             VALUES (timezone('UTC', now()) - interval '330 s', 4711, 'web1');
           INSERT INTO ready (job_id) VALUES (1);
           INSERT INTO claimed (job_id, process_id, created_at) VALUES (2, 1, timezone('UTC', now()));
           INSERT INTO failed (job_id, created_at) VALUES (3, timezone('UTC', now()));""",
        failed=1, holder="web1 4711",
    ),
    # not in the table at all: a session's advisory lock
    "que": Sketch(
        _preset("que", "advisory-lock", "timestamptz", "que_jobs", """
from = "{schema}.que_jobs j"
[fields]
id = "j.id"
queue = "j.queue"
type = "j.job_class"
run_after = "j.run_at"
priority = "j.priority"
[states.waiting]
where = '''j.finished_at IS NULL AND j.expired_at IS NULL AND NOT EXISTS (SELECT FROM pg_locks l
  WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND (l.classid::bigint << 32 | l.objid::bigint) = j.id)'''
due = "j.run_at <= {now}"
[states.running]
from = '''pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
  JOIN {schema}.que_jobs j ON j.id = (l.classid::bigint << 32 | l.objid::bigint)'''
where = '''l.locktype = 'advisory' AND l.objsubid = 1
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())'''
[holder]
kind = "worker-table"
text = "a.application_name"
[lease]
kind = "session"
"""),
        """CREATE TABLE que_jobs (id bigserial PRIMARY KEY, queue text DEFAULT 'q', job_class text DEFAULT 't',
             priority smallint DEFAULT 100, run_at timestamptz, finished_at timestamptz, expired_at timestamptz);
           INSERT INTO que_jobs (run_at) VALUES (now() - interval '60 s'), (now());""",
        stuck=0, lock=2,
    ),
}  # fmt: skip
