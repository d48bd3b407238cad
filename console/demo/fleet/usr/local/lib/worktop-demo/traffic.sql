-- Jobs that arrive: about as many as the healthy workers finish.
SELECT worktop_enqueue('mail', 'newsletter', jsonb_build_object('to', 'user' || (random() * 9999)::int || '@example.org'))
FROM generate_series(1, 9)
UNION ALL
SELECT worktop_enqueue('thumbnails', 'resize', jsonb_build_object('image', md5(random()::text) || '.jpg'))
FROM generate_series(1, 2)
UNION ALL
SELECT worktop_enqueue('reports', 'monthly', jsonb_build_object('customer', (random() * 9999)::int))
FROM generate_series(1, 2)
UNION ALL
SELECT worktop_enqueue('webhooks', 'deliver', jsonb_build_object('url', 'https://hooks.example.org/' || (random() * 99)::int))
FROM generate_series(1, 4)
UNION ALL
SELECT worktop_enqueue('digests', 'daily', jsonb_build_object('user', (random() * 9999)::int))
WHERE random() < 0.3
\watch interval=5
