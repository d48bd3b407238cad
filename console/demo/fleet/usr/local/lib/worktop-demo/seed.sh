#!/bin/sh
# The database of the application, worktop's job table in it, and a history.
set -e
psql="/usr/local/lib/worktop-demo/pgsql/psql --quiet --no-psqlrc --set=ON_ERROR_STOP=1"
[ "$($psql -h /run/postgresql -U postgres -Atc "SELECT count(*) FROM pg_database WHERE datname = 'app'")" = 1 ] && exit 0
$psql -h /run/postgresql -U postgres <<SQL
CREATE ROLE app LOGIN PASSWORD '$(cut -d: -f5 /root/.pgpass)';
CREATE DATABASE app OWNER app;
SQL
export HOME=/root
/usr/local/bin/worktop queue install >/dev/null
$psql --file=/usr/local/lib/worktop-demo/seed.sql postgresql://app@127.0.0.1/app
