"""What is measured on: a demo host with 200 units more and a job table of a million rows more."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

from console.demo import fleet as demo
from console.demo import state
from tests.conftest import DemoHost

UNIT = "idle"
FOLDER = "/srv/bench"  # inside
ALL_ROLES = f"{FOLDER}/fleet.toml"  # the demo's configuration and the role of the 200 units
NO_ROLE = f"{FOLDER}/database.toml"
BATCH = 500_000

_TEMPLATE = """\
[Unit]
Description=Bench worker %i
StartLimitIntervalSec=0
[Service]
ExecStart=/bin/sleep 100000
MemoryMax=32M
"""
_ROLE = """
[roles.{name}]
unit = "{name}@.service"
instances = {units}
budget = {budget}
match = "^/bin/sleep 100000$"
"""
# The rows look like the demo's own; nobody takes those that wait, so that the load stays the same.
_JOBS = """
INSERT INTO worktop_jobs (queue, type, payload, status, attempts, run_after, created_at, started_at, finished_at,
                          heartbeat_at, lease_host, lease_unit, lease_pid, lease_start, last_error)
SELECT CASE WHEN status = 'waiting' THEN '{name}'
            ELSE (ARRAY['mail', 'thumbnails', 'reports', 'webhooks', '{name}'])[1 + n % 5] END,
       'bench', jsonb_build_object('n', n, 'to', md5(n::text)), status, (status <> 'waiting')::int, at, at,
       CASE WHEN status <> 'waiting' THEN at END, CASE WHEN status <> 'waiting' THEN at + interval '1 second' END,
       CASE WHEN status <> 'waiting' THEN at END, 'wrk01', '{name}@1.service', 300 + n % 30000, 5000 + n,
       CASE WHEN status = 'failed' THEN 'RuntimeError: bench ' || n END
FROM generate_series({first}, {last}) AS n,
     LATERAL (SELECT now() - interval '30 days' + (n * (interval '29 days' / {jobs})) AS at,
                     CASE n % 20 WHEN 0 THEN 'waiting' WHEN 1 THEN 'failed' ELSE 'done' END AS status) AS of_row
"""


def prepare(host: DemoHost, units: int, jobs: int, say: Callable[[str], None]) -> None:
    """Add the units, the configurations and the rows."""
    _make_room(host, jobs)
    own = host.run(["cat", "/etc/worktop/worktop.toml"]).stdout
    host.run(["mkdir", "-p", FOLDER])
    _write(host, ALL_ROLES, own + _ROLE.format(name=UNIT, units=units, budget=2 * units))
    _write(host, NO_ROLE, f'[database]\ndsn = "{demo.DSN}"\n')
    say(f"starting {units} units")
    names = " ".join(f"{UNIT}@{number}.service" for number in range(1, units + 1))
    _write(host, f"/etc/systemd/system/{UNIT}@.service", _TEMPLATE)
    # the target keeps a stopped instance loaded: systemd then still knows when it stopped
    _write(host, f"/etc/systemd/system/{UNIT}.target", f"[Unit]\nWants={names}\n")
    host.run(["systemctl", "daemon-reload"])
    host.run(["systemctl", "start", f"{UNIT}.target"], timeout=180)
    say(f"adding {jobs} jobs")
    for first in range(1, jobs + 1, BATCH):
        last = min(jobs, first + BATCH - 1)
        sql(host, _JOBS.format(name=UNIT, first=first, last=last, jobs=jobs), timeout=900)
    sql(host, "VACUUM (ANALYZE) worktop_jobs", timeout=900)
    sql(host, "CHECKPOINT", timeout=300)


def sql(host: DemoHost, query: str, timeout: float = 60.0) -> str:
    """A query as the database's superuser."""
    argv = ["psql", "--no-psqlrc", "-At", "-h", "/run/postgresql", "-U", "postgres", "-c", query, "app"]
    return host.run(argv, timeout=timeout).stdout.strip()


def state_changed(host: DemoHost, unit: str) -> float:
    """When systemd says the unit last changed its state, on the clock of time.monotonic()."""
    argv = ["systemctl", "show", "--property=StateChangeTimestampMonotonic", "--value", unit]
    return int(host.run(argv).stdout) / 1e6


def settled(host: DemoHost, units: int, timeout: float = 60.0) -> None:
    """Wait until all units run."""
    deadline = time.monotonic() + timeout
    while True:
        argv = ["systemctl", "list-units", "--no-legend", "--plain", "--state=running", f"{UNIT}@*"]
        if len(host.run(argv).stdout.splitlines()) >= units or time.monotonic() > deadline:
            return
        time.sleep(0.5)


def _write(host: DemoHost, path: str, text: str) -> None:
    host.run(["sh", "-c", f"cat > {path}; chmod a+r {path}"], input=text)


def _make_room(host: DemoHost, jobs: int) -> None:
    """The demo host lives in a tmpfs of limited size: let it grow with the rows (about 400 bytes each)."""
    base = state.folder(host.state.name) / "base"
    enter = ["nsenter", f"--target={host.state.supervisor.pid}", "--mount", "--"]
    wanted = f"remount,size={2048 + jobs // 1000}M"
    subprocess.run([*enter, "mount", "-o", wanted, str(base)], check=True, capture_output=True)
