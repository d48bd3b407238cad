"""The smaller demo, where no host can be booted: PostgreSQL and plain worker processes in a temporary folder.

systemd is shown as absent (or is the machine's own). What it starts dies with it: every process asks the kernel for a
signal when this one ends. The folder is removed at the end, or by the next run.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

import console
from console.demo import fleet, state
from console.demo.postgres import postgres_programs, reachable_programs
from console.demo.terminal import foreground
from console.errors import DemoError

PREFIX = "worktop-demo-small-"
_SQL = fleet.TREE / fleet.TOOLS
_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}'
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
shared_buffers = 32MB
max_wal_size = 128MB
max_connections = 40
max_logical_replication_workers = 0
jit = off
"""
_CONFIG = """\
[database]
dsn = "postgresql:///app?host={folder}&user=postgres"

[roles.mail]
budget = 8
match = "worker --role mail"

[roles.thumbnails]
budget = 6
match = "worker --role thumbnails"

[roles.reports]
budget = 4
match = "worker --role reports"

[roles.webhooks]
budget = 2
match = "worker --role webhooks"

[roles.digests]
budget = 2
match = "worker --role digests"

[roles.exports]
budget = 1
match = "worker --role exports"
"""
# (role, handlers, options): digests has none, the one of thumbnails is killed in the middle of its jobs
_WORKERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("mail", "HANDLERS", ()),
    ("mail", "HANDLERS", ()),
    ("webhooks", "HANDLERS", ()),
    ("reports", "SLOW", ("--lease", "10", "--no-renew")),
    ("exports", "HANDLERS", ("--lease", "10")),
    ("thumbnails", "HANDLERS", ("--lease", "10", "--concurrency", "2")),
)
Say = Callable[[str], None]


def run(*, terminal: bool, as_json: bool, say: Say) -> int:
    """Start it, open the console on it (without a terminal: print its status once), and remove everything."""
    sweep()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    demo = _Demo(folder)
    try:
        demo.start(say)
        command = [*_worktop(), "--config", str(folder / "worktop.toml")]
        if terminal:
            return foreground(command, env=_environment())
        say("waiting until leases run out")
        demo.wait_for(
            "SELECT count(DISTINCT queue) >= 3 FROM worktop_jobs WHERE status = 'running' AND lease_expires < now()"
        )
        wanted = [*command, "status", *(["--json"] if as_json else [])]
        return subprocess.run(wanted, stdin=subprocess.DEVNULL, env=_environment()).returncode
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        demo.close()


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _worktop() -> list[str]:
    return [sys.executable, "-m", "console"]


def _environment() -> dict[str, str]:
    source = str(Path(console.__file__).resolve().parent.parent)
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")} | {"PYTHONPATH": source}


class _Demo:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._programs = postgres_programs()
        self._workers: list[subprocess.Popen[bytes]] = []
        self._server: subprocess.Popen[bytes] | None = None
        # PostgreSQL refuses to be root
        self._account = "nobody" if os.geteuid() == 0 else None
        me = state.identify(os.getpid())
        (folder / "owner.json").write_bytes(msgspec.json.encode(me))

    def start(self, say: Say) -> None:
        say("starting PostgreSQL")
        self._start_server()
        (self._folder / "worktop.toml").write_text(_CONFIG.format(folder=self._folder))
        say("filling the job table: 200 000 jobs")
        self._psql("--command", "CREATE DATABASE app", database="postgres")
        installed = [*_worktop(), "--config", str(self._folder / "worktop.toml"), "queue", "install"]
        self._check(
            "worktop queue install", subprocess.run(installed, capture_output=True, text=True, env=_environment())
        )
        self._psql("--file", str(_SQL / "seed.sql"))
        say("starting the workers and killing one of them")
        for role, handlers, options in _WORKERS:
            reference = f"console.demo.handlers:{handlers}"
            command = [*_worktop(), "--config", str(self._folder / "worktop.toml"), "worker", "--role", role]
            self._workers.append(self._spawn([*command, "--handlers", reference, *options], "KILL"))
        traffic = [*self._psql_argv("app"), "--output=/dev/null", "--file", str(_SQL / "traffic.sql")]
        self._workers.append(self._spawn(traffic, "KILL"))
        victim = self._workers[len(_WORKERS) - 1]
        self.wait_for("SELECT count(*) = 2 FROM worktop_jobs WHERE status = 'running' AND queue = 'thumbnails'")
        victim.kill()
        victim.wait()

    def wait_for(self, query: str, timeout: float = 60.0) -> None:
        """Until the query says true; a demo that is slow to show something is shown all the same."""
        deadline = time.monotonic() + timeout
        while self._psql("-Atc", query).strip() != "t" and time.monotonic() < deadline:
            time.sleep(0.2)

    def close(self) -> None:
        """End every process and remove the folder."""
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.wait()
        if self._server:
            self._server.send_signal(signal.SIGINT)
            try:
                self._server.wait(10.0)
            except subprocess.TimeoutExpired:
                self._server.send_signal(signal.SIGQUIT)
                self._server.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start_server(self) -> None:
        data = self._folder / "data"
        data.mkdir(mode=0o700)
        if self._account:
            self._programs = reachable_programs(self._folder / "pgsql")
            entry = pwd.getpwnam(self._account)
            for path in (self._folder, data):
                os.chown(path, entry.pw_uid, entry.pw_gid)
        initdb = [str(self._programs / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust"]
        initdb += ["--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
        made = subprocess.run(initdb, user=self._account, cwd=self._folder, capture_output=True, text=True)
        self._check("initdb", made)
        with (data / "postgresql.conf").open("a") as settings:
            settings.write(_SETTINGS.format(folder=self._folder))
        server = [str(self._programs / "postgres"), "-D", str(data)]
        self._server = self._spawn(server, "INT", user=self._account)
        deadline = time.monotonic() + 30.0
        ready = [str(self._programs / "pg_isready"), "-q", "-h", str(self._folder)]
        while subprocess.run(ready, cwd="/").returncode:
            if self._server.poll() is not None or time.monotonic() > deadline:
                log = (self._folder / "log").read_text(errors="replace").strip().splitlines()
                raise DemoError("no demo", f"PostgreSQL did not start: {log[-1] if log else 'it said nothing'}")
            time.sleep(0.05)

    def _spawn(self, argv: list[str], at_our_end: str, user: str | None = None) -> subprocess.Popen[bytes]:
        """Start a process that gets a signal when this one ends, in whatever way."""
        entry = pwd.getpwnam(user) if user else None
        become = [f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"] if entry else []
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                ["setpriv", f"--pdeathsig={at_our_end}", *become, "--", *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for the console
            )

    def _psql_argv(self, database: str) -> list[str]:
        settings = ["--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "-h", str(self._folder), "-U", "postgres"]
        return [str(self._programs / "psql"), *settings, "-d", database]

    def _psql(self, *arguments: str, database: str = "app") -> str:
        command = [*self._psql_argv(database), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=_environment())
        self._check("psql", done)
        return done.stdout

    def _check(self, what: str, done: subprocess.CompletedProcess[str]) -> None:
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines()
            raise DemoError("no demo", f"{what} failed: {words[-1] if words else done.returncode}")


def sweep() -> list[Path]:
    """Remove the folders of smaller demos of this account that have ended without doing so themselves."""
    swept = []
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            owner = msgspec.json.decode((folder / "owner.json").read_bytes(), type=state.Identity)
            ours = (folder / "owner.json").lstat().st_uid == os.geteuid() and not folder.is_symlink()
            if ours and not owner.alive():
                shutil.rmtree(folder, ignore_errors=True)
                swept.append(folder)
    return swept
