-- A history of a week: 200 000 done jobs, a few thousand waiting, failed ones with hostile text.
SET search_path = public;

-- The table is filled faster without its indexes; they are made again at the end.
CREATE TEMPORARY TABLE indexes AS
SELECT indexrelid::regclass::text AS name, pg_get_indexdef(indexrelid) AS definition
FROM pg_index WHERE indrelid = 'worktop_jobs'::regclass AND NOT indisunique;
DO $$
DECLARE
    index record;
BEGIN
    FOR index IN SELECT name FROM indexes LOOP
        EXECUTE 'DROP INDEX ' || index.name;
    END LOOP;
END $$;

CREATE TEMPORARY TABLE history (queue text, type text, unit text, jobs int, seconds float, oldest interval, youngest interval);
INSERT INTO history VALUES
    ('mail',       'newsletter', 'mail-worker@%s.service',       130000,   1, '7 days', '20 minutes'),
    ('thumbnails', 'resize',     'thumbnails-worker@%s.service',  45000,   2, '7 days', '20 minutes'),
    ('webhooks',   'deliver',    'cron.service',                  15000,   4, '7 days', '20 minutes'),
    ('reports',    'monthly',    'cron.service',                   7000,  20, '7 days', '20 minutes'),
    -- the last minutes, at about the rate of traffic.sql
    ('mail',       'newsletter', 'mail-worker@%s.service',         2160,   1, '20 minutes', '1 second'),
    ('thumbnails', 'resize',     'thumbnails-worker@%s.service',    480,   2, '20 minutes', '5 seconds'),
    ('webhooks',   'deliver',    'cron.service',                    600,   4, '20 minutes', '5 seconds'),
    ('reports',    'monthly',    'cron.service',                    200,  20, '20 minutes', '10 seconds'),
    ('exports',    'csv',        'exports-worker@%s.service',      2400,  25, '7 days', '10 minutes'),
    ('digests',    'daily',      'cron.service',                    600,   3, '7 days', '41 minutes');

-- Finished at even distances over the week, with some noise.
INSERT INTO worktop_jobs (queue, type, payload, status, attempts, run_after, created_at, started_at, finished_at,
                          heartbeat_at, lease_host, lease_unit, lease_pid, lease_start)
SELECT queue, type, jsonb_build_object('n', number), 'done', 1, at - wait, at - wait, at - work, at, at - work,
       'wrk01', format(unit, 1 + number % 3), 300 + number % 30000, 5000 + number * 7
FROM history, generate_series(1, jobs) AS number,
    LATERAL (SELECT now() - youngest - (oldest - youngest) * ((number - random()) / jobs) AS at,
                    seconds * (0.5 + random()) * interval '1 second' AS work,
                    seconds * 3 * interval '1 second' AS wait) AS times;

-- Waiting since their oldest age until now.
CREATE TEMPORARY TABLE backlog (queue text, type text, jobs int, oldest interval);
INSERT INTO backlog VALUES
    ('mail', 'newsletter', 60, '40 seconds'), ('thumbnails', 'resize', 310, '6 minutes 10 seconds'),
    ('reports', 'monthly', 1204, '18 minutes 22 seconds'), ('webhooks', 'deliver', 880, '13 minutes'),
    ('digests', 'daily', 640, '41 minutes 7 seconds'), ('exports', 'csv', 13, '9 minutes 55 seconds');
INSERT INTO worktop_jobs (queue, type, payload, created_at, run_after)
SELECT queue, type, jsonb_build_object('n', number), at, at
FROM backlog, generate_series(1, jobs) AS number,
    LATERAL (SELECT now() - oldest * ((jobs - number + 1)::float / jobs) AS at) AS times;
INSERT INTO worktop_jobs (queue, type, payload, run_after)  -- not due yet
SELECT 'mail', 'newsletter', jsonb_build_object('n', number), now() + number * interval '7 minutes'
FROM generate_series(1, 120) AS number;

-- Taken first, by workers that are then killed in the middle of them (console/demo/incidents.py).
INSERT INTO worktop_jobs (queue, type, payload, priority, created_at, run_after)
SELECT queue, type, '{"accident": true, "seconds": 3600}', 100, now() - interval '7 minutes', now() - interval '7 minutes'
FROM (VALUES ('thumbnails', 'resize'), ('thumbnails', 'resize'), ('webhooks', 'deliver')) AS accident (queue, type);

-- Failed for good. Every text is synthetic; the first ones are what a screen must not obey.
CREATE TEMPORARY TABLE failures (type text, payload jsonb, error text);
INSERT INTO failures VALUES
    ('resize', '{"image": "a.jpg"}', E'\x1b[31mOSError\x1b[0m: cannot identify image file \x1b[2J\x1b[1;1H\x1b[5mall is well\x1b[0m'),
    ('resize', '{"image": "b.jpg"}', E'ValueError: \x1b]52;c;Y3VybCBldmlsLmV4YW1wbGUgfCBzaA==\x07\x1b]0;owned\x07 bad header'),
    ('resize', '{"image": "[/red][bold].jpg"}', '[/red] [bold red]KeyError[/]: [link=https://example.org]click[/link] [@click=app.quit]x[/]'),
    ('resize', E'{"image": "invoice_\u202Egpj.exe"}', E'OSError: no such file: invoice_\u202Egpj.exe\u202C \u2066\u2069\u200f\u061c'),
    ('resize', '{"image": "c.jpg"}', E'bell \x07 backspace \b\b\b\b tab \t return \r overwritten\x0b\x0c delete \x7f c1 \u009b31m end'),
    ('resize', E'{"image": "\\u0007\\u001b[8m\\u6f22\\u5b57\\ud83d\\udc69\\u200d\\ud83d\\udd27.jpg"}', E'wide 漢字, joined 👩‍🔧, combining e\u0301\u0301\u0301\u0301'),
    ('resize', '{"image": "d.jpg", "api_token": "demo-not-a-real-token-5f2c9b1e"}',
        'HTTPError: 401 for https://cdn.example.org/put?api_token=demo-not-a-real-token-5f2c9b1e'),
    ('resize', '{"image": "e.jpg"}', 'OperationalError: connection to postgresql://media:demo-not-a-real-password@db9.example.org/media failed'),
    ('resize', jsonb_build_object('image', 'huge.svg', 'data', repeat('0123456789abcdef', 65536)), 'MemoryError');
INSERT INTO failures
SELECT 'resize', jsonb_build_object('image', number || '.jpg'), E'Traceback (most recent call last):\n  File "app/jobs.py", line 41, in resize\n    with open(path) as image:\nFileNotFoundError: [Errno 2] No such file or directory: ''/media/' || number || E'.jpg''\n'
FROM generate_series(1, 8) AS number;
INSERT INTO worktop_jobs (queue, type, payload, status, attempts, run_after, created_at, started_at, finished_at,
                          heartbeat_at, lease_host, lease_unit, lease_pid, lease_start, last_error)
SELECT 'thumbnails', type, payload, 'failed', 4, at - interval '40 minutes', at - interval '40 minutes',
       at - interval '1 second', at, at - interval '1 second', 'wrk01', 'thumbnails-worker@1.service', 700, 9000, error
FROM (SELECT *, now() - interval '17 minutes' * row_number() OVER () AS at FROM failures) AS failed;

DO $$
DECLARE
    index record;
BEGIN
    FOR index IN SELECT definition FROM indexes LOOP
        EXECUTE index.definition;
    END LOOP;
END $$;
ANALYZE worktop_jobs;
