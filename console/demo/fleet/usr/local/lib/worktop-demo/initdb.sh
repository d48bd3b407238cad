#!/bin/sh
# Makes the cluster once. Nothing is synced: the whole machine is gone when the demo ends.
set -e
data=/var/lib/postgresql/data
[ -s $data/PG_VERSION ] && exit 0
/usr/local/lib/worktop-demo/pgsql/initdb -D $data -U postgres --encoding=UTF8 --locale=C --no-sync --no-instructions --auth=peer >/dev/null
cat >> $data/postgresql.conf <<'CONF'
listen_addresses = '127.0.0.1'
unix_socket_directories = '/run/postgresql'
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 128MB
min_wal_size = 32MB
shared_buffers = 64MB
max_connections = 100
max_logical_replication_workers = 0
io_method = sync
jit = off
log_timezone = UTC
timezone = UTC
CONF
cat > $data/pg_hba.conf <<'CONF'
local all postgres peer map=admin
host app app 127.0.0.1/32 scram-sha-256
CONF
cat > $data/pg_ident.conf <<'CONF'
admin postgres postgres
admin root postgres
CONF
