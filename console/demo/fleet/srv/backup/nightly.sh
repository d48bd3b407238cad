#!/bin/sh
# Dumps the database; keeps the last seven.
set -e
mkdir -p /home/deploy/backup
/usr/local/lib/worktop-demo/pgsql/pg_dump --format=custom --file="/home/deploy/backup/app-$(date +%u).dump" postgresql://app@127.0.0.1/app
