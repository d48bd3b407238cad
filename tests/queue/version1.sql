-- worktop's own job table and the functions that move its rows, usable from any language.
--
-- `worktop queue install` runs this file in one transaction, under an advisory lock, with search_path set to the
-- schema of worktop.toml; every statement may run again. By hand:
--
--     BEGIN; SET LOCAL search_path = jobs, pg_temp; \i schema.sql  COMMIT;
--
-- The life of a row:
--
--     worktop_enqueue ─▶ waiting ─ worktop_claim ─▶ running ─ worktop_finish ─▶ done
--                           ▲                          │
--                           └── 1, 5, 30 minutes ── worktop_fail ── no attempts left ─▶ failed
--
-- A claim gives the row a new lease token and a lease that worktop_heartbeat renews. heartbeat, finish and fail are
-- rejected with SQLSTATE WT001 when the token is no longer the row's: somebody else holds the job, or nobody. finish
-- and fail may be repeated with the same token (the first answer may have been lost with the connection).
-- Nothing takes a running row away by itself; one whose lease has expired is "stuck" and is reclaimed by a person.
-- All times are the database's clock.

CREATE TABLE IF NOT EXISTS worktop_schema (
    version    integer     PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS worktop_queues (
    queue      text        PRIMARY KEY,
    paused     boolean     NOT NULL DEFAULT false,  -- true: worktop_claim gives out nothing of this queue
    updated_at timestamptz NOT NULL DEFAULT now()
);

-- Fencing tokens grow with every claim of any row, so that a store behind the handler can compare them.
CREATE SEQUENCE IF NOT EXISTS worktop_lease_tokens AS bigint;

CREATE TABLE IF NOT EXISTS worktop_jobs (
    id              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    queue           text        NOT NULL,
    type            text        NOT NULL,
    payload         jsonb       NOT NULL DEFAULT '{}',
    status          text        NOT NULL DEFAULT 'waiting',
    priority        integer     NOT NULL DEFAULT 0,      -- higher first
    attempts        integer     NOT NULL DEFAULT 0,      -- counted at each claim, so that a crash counts too
    max_attempts    integer     NOT NULL DEFAULT 4,
    reclaims        integer     NOT NULL DEFAULT 0,      -- how often it was taken from a holder that did not end it
    run_after       timestamptz NOT NULL DEFAULT now(),
    idempotency_key text,
    -- the holder; kept after the job has ended, as the one who ended it
    lease_host      text,
    lease_boot_id   text,
    lease_unit      text,
    lease_pid       integer,
    lease_start     bigint,                              -- start of the process, clock ticks since boot
    lease_token     bigint,                              -- of the last claim; NULL after a reclaim
    lease_expires   timestamptz,                         -- only a running row has one
    heartbeat_at    timestamptz,
    last_error      text,
    created_at      timestamptz NOT NULL DEFAULT now(),
    started_at      timestamptz,                         -- of the last attempt
    finished_at     timestamptz,
    CONSTRAINT worktop_jobs_queue CHECK (queue <> '' AND octet_length(queue) <= 200),
    CONSTRAINT worktop_jobs_type CHECK (type <> ''),
    CONSTRAINT worktop_jobs_status CHECK (status IN ('waiting', 'running', 'done', 'failed')),
    CONSTRAINT worktop_jobs_attempts CHECK (attempts >= 0 AND max_attempts >= 1 AND reclaims >= 0),
    CONSTRAINT worktop_jobs_lease CHECK (
        (status = 'running') = (lease_expires IS NOT NULL) AND (status <> 'running' OR lease_token IS NOT NULL)
    ),
    CONSTRAINT worktop_jobs_started CHECK (status <> 'running' OR started_at IS NOT NULL),
    CONSTRAINT worktop_jobs_finished CHECK ((status IN ('done', 'failed')) = (finished_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- One index per question; each is partial, or leads with what the question fixes.
-- the next job to claim
CREATE INDEX IF NOT EXISTS worktop_jobs_claim ON worktop_jobs (queue, priority DESC, run_after, id) WHERE status = 'waiting';
-- how many are due, since when the oldest waits
CREATE INDEX IF NOT EXISTS worktop_jobs_due ON worktop_jobs (queue, run_after, id) WHERE status = 'waiting';
-- running, stuck, longest overdue first
CREATE INDEX IF NOT EXISTS worktop_jobs_lease ON worktop_jobs (queue, lease_expires, id) WHERE status = 'running';
-- done and failed per minute, the youngest finished
CREATE INDEX IF NOT EXISTS worktop_jobs_done ON worktop_jobs (queue, finished_at) WHERE status = 'done';
CREATE INDEX IF NOT EXISTS worktop_jobs_failed ON worktop_jobs (queue, finished_at) WHERE status = 'failed';
-- pages of one state by id, which queues there are
CREATE INDEX IF NOT EXISTS worktop_jobs_page ON worktop_jobs (queue, status, id);
CREATE UNIQUE INDEX IF NOT EXISTS worktop_jobs_idempotency ON worktop_jobs (queue, idempotency_key)
    WHERE idempotency_key IS NOT NULL;


-- Adds a job and wakes an idle worker (NOTIFY worktop_jobs, payload: the queue). With an idempotency key that the
-- queue has seen and still has, nothing is added and the id of that row is returned.
CREATE OR REPLACE FUNCTION worktop_enqueue(
    queue           text,
    type            text,
    payload         jsonb       DEFAULT '{}',
    run_after       timestamptz DEFAULT now(),
    priority        integer     DEFAULT 0,
    max_attempts    integer     DEFAULT 4,
    idempotency_key text        DEFAULT NULL
) RETURNS bigint LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
#variable_conflict use_column
DECLARE
    job bigint;
BEGIN
    LOOP
        INSERT INTO worktop_jobs (queue, type, payload, run_after, priority, max_attempts, idempotency_key)
        VALUES (worktop_enqueue.queue, worktop_enqueue.type, worktop_enqueue.payload, worktop_enqueue.run_after,
                worktop_enqueue.priority, worktop_enqueue.max_attempts, worktop_enqueue.idempotency_key)
        ON CONFLICT (queue, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
        RETURNING id INTO job;
        IF FOUND THEN
            IF worktop_enqueue.run_after <= now() THEN
                PERFORM pg_notify('worktop_jobs', worktop_enqueue.queue);
            END IF;
            RETURN job;
        END IF;
        SELECT id INTO job FROM worktop_jobs j
        WHERE j.queue = worktop_enqueue.queue AND j.idempotency_key = worktop_enqueue.idempotency_key;
        IF FOUND THEN
            RETURN job;
        END IF;
        -- the row with that key was deleted between the two statements: add it after all
    END LOOP;
END
$$;


-- Claims up to `jobs` due jobs: highest priority first, then longest due. Never takes a running row; skips rows
-- that another claim is just taking and queues that are paused. Commit at once: until then nobody sees the lease.
CREATE OR REPLACE FUNCTION worktop_claim(
    queues  text[],
    host    text,
    boot_id text,
    unit    text,
    pid     integer,
    start   bigint,
    lease   interval DEFAULT '60 seconds',
    jobs    integer  DEFAULT 1,
    types   text[]   DEFAULT NULL
) RETURNS SETOF worktop_jobs LANGUAGE sql SET search_path FROM CURRENT AS $$
    WITH due AS MATERIALIZED (
        SELECT candidate.id
        FROM unnest(worktop_claim.queues) AS wanted(queue)
        CROSS JOIN LATERAL (
            SELECT j.id, j.priority, j.run_after
            FROM worktop_jobs j
            WHERE j.status = 'waiting' AND j.queue = wanted.queue AND j.run_after <= now()
              AND (worktop_claim.types IS NULL OR j.type = ANY (worktop_claim.types))
            ORDER BY j.priority DESC, j.run_after, j.id
            LIMIT worktop_claim.jobs
            FOR UPDATE SKIP LOCKED
        ) AS candidate
        WHERE NOT EXISTS (SELECT FROM worktop_queues p WHERE p.queue = wanted.queue AND p.paused)
        ORDER BY candidate.priority DESC, candidate.run_after, candidate.id
        LIMIT worktop_claim.jobs
    )
    UPDATE worktop_jobs j
    SET status = 'running', attempts = j.attempts + 1, started_at = now(), heartbeat_at = now(),
        lease_token = nextval('worktop_lease_tokens'), lease_expires = now() + worktop_claim.lease,
        lease_host = worktop_claim.host, lease_boot_id = worktop_claim.boot_id, lease_unit = worktop_claim.unit,
        lease_pid = worktop_claim.pid, lease_start = worktop_claim.start
    FROM due
    WHERE j.id = due.id
    RETURNING j.*
$$;


-- The rejection that heartbeat, finish and fail share: says who holds the job now.
CREATE OR REPLACE FUNCTION worktop_lease_lost(job bigint, token bigint)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    found worktop_jobs;
BEGIN
    SELECT * INTO found FROM worktop_jobs j WHERE j.id = job;
    RAISE EXCEPTION USING
        ERRCODE = 'WT001',
        MESSAGE = format('job %s: lease token %s is no longer the row''s', job, token),
        DETAIL = CASE
            WHEN found.id IS NULL THEN 'there is no such job'
            WHEN found.status = 'running' THEN format('token %s of pid %s on %s holds it since %s',
                found.lease_token, found.lease_pid, found.lease_host, found.started_at)
            ELSE format('it is %s', found.status)
        END,
        HINT = 'drop the result: the job belongs to somebody else, or has ended';
END
$$;


-- Renews the lease and returns when it will expire.
CREATE OR REPLACE FUNCTION worktop_heartbeat(job bigint, token bigint, lease interval DEFAULT '60 seconds')
RETURNS timestamptz LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    expires timestamptz;
BEGIN
    UPDATE worktop_jobs j SET heartbeat_at = now(), lease_expires = now() + lease
    WHERE j.id = job AND j.lease_token = token AND j.status = 'running'
    RETURNING j.lease_expires INTO expires;
    IF NOT FOUND THEN
        PERFORM worktop_lease_lost(job, token);
    END IF;
    RETURN expires;
END
$$;


-- Ends a job well. May run in the transaction of the work itself: then the effects and the end are one.
CREATE OR REPLACE FUNCTION worktop_finish(job bigint, token bigint)
RETURNS void LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE worktop_jobs j
    SET status = 'done', finished_at = now(), last_error = NULL, lease_expires = NULL
    WHERE j.id = job AND j.lease_token = token AND j.status = 'running';
    IF NOT FOUND AND NOT EXISTS (
        SELECT FROM worktop_jobs j WHERE j.id = job AND j.lease_token = token AND j.status = 'done'
    ) THEN
        PERFORM worktop_lease_lost(job, token);
    END IF;
END
$$;


-- Ends an attempt badly and returns the new status: 'waiting' again in 1, 5, then 30 minutes (or in `retry_in`),
-- 'failed' when the attempts are used up. The last 64 KB of the error are kept.
CREATE OR REPLACE FUNCTION worktop_fail(job bigint, token bigint, error text, retry_in interval DEFAULT NULL)
RETURNS text LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    became text;
BEGIN
    UPDATE worktop_jobs j
    SET status = CASE WHEN j.attempts < j.max_attempts THEN 'waiting' ELSE 'failed' END,
        finished_at = CASE WHEN j.attempts < j.max_attempts THEN NULL ELSE now() END,
        run_after = CASE WHEN j.attempts < j.max_attempts
            THEN now() + coalesce(retry_in, CASE WHEN j.attempts <= 1 THEN interval '1 minute'
                                                 WHEN j.attempts = 2 THEN interval '5 minutes'
                                                 ELSE interval '30 minutes' END)
            ELSE j.run_after END,
        last_error = right(error, 65536), lease_expires = NULL
    WHERE j.id = job AND j.lease_token = token AND j.status = 'running'
    RETURNING j.status INTO became;
    IF NOT FOUND THEN
        SELECT j.status INTO became FROM worktop_jobs j
        WHERE j.id = job AND j.lease_token = token AND j.status IN ('waiting', 'failed');
        IF NOT FOUND THEN
            PERFORM worktop_lease_lost(job, token);
        END IF;
    END IF;
    RETURN became;
END
$$;


INSERT INTO worktop_schema (version) VALUES (1) ON CONFLICT (version) DO NOTHING;
