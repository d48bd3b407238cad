"""The demo host: a disposable machine with a real systemd, cron, PostgreSQL and a fleet with every fault."""
