#!/bin/sh
# Starts the report workers. Called by cron.
cd /srv/reports || exit 1
for number in 1 2 3; do
    nohup /usr/local/bin/worktop worker --role reports --handlers console.demo.handlers:HANDLERS --lease 30 --lifetime 170 >/dev/null 2>&1 &
done
