"""The values that flow between the layers: facts from the sources, and the fleet that is made of them.

Times are epoch seconds in UTC, durations are seconds, memory is bytes, CPU is the share of one core (0.5 = 50 %).
`None` always means "not known" or "not set", never zero; where a source was refused, the reason is in its reading.
Text in these values is raw: it came from outside and passes console/text.py before it is displayed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Generic, Literal, TypeVar

import msgspec

from console.errors import Problem

T = TypeVar("T")


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the keyword-only frozen values."""


# --- what the person asked for -----------------------------------------------------------------------------------


class Role(Value, frozen=True, kw_only=True):
    """A kind of work with one owner, one way of starting and a budget; from worktop.toml, or guessed."""

    name: str
    template: str = ""  # "mail-worker@.service"; "" when the role has no unit
    instances: tuple[str, ...] = ()  # the desired set: ("1", "2", "3"); without a unit only their number counts
    budget: int | None = None  # most workers there may be
    queues: tuple[str, ...] = ()  # rows of this role: queue is one of these
    types: tuple[str, ...] = ()  # and, when given, type is one of these
    match: tuple[str, ...] = ()  # regular expressions searched in a command line joined by single spaces
    oldest_limit: float = 900.0  # the oldest waiting job may be this old, seconds
    progress_limit: float = 300.0  # jobs wait and none finished for this long: hung, seconds
    watch: float = 20.0  # seconds each worker is watched after it was started, while the role grows
    health: tuple[str, ...] = ()  # its health check: a command's arguments, one http(s) address, or "finishes jobs"
    configured: bool = True  # False: made from a template unit because there is no configuration

    def unit_name(self, instance: str) -> str:
        """The unit of one instance: `mail-worker@.service`, `1` -> `mail-worker@1.service`."""
        prefix, _, suffix = self.template.partition("@")
        return f"{prefix}@{instance}{suffix}"

    def desired_units(self) -> tuple[str, ...]:
        return _desired_units(self) if self.template else ()


@lru_cache(maxsize=256)
def _desired_units(role: Role) -> tuple[str, ...]:
    return tuple(role.unit_name(instance) for instance in role.instances)


class Limits(Value, frozen=True, kw_only=True):
    """Budgets of the host and the account: [host] in worktop.toml."""

    memory_reserve: int = 512 * 1024 * 1024  # bytes kept for database, web server and page cache
    account_processes: int | None = None  # budget of processes for the account that runs the workers


# --- readings ------------------------------------------------------------------------------------------------------

SourceName = Literal["agent", "units", "processes", "host", "schedules", "queue"]


class Reading(Value, Generic[T], frozen=True, kw_only=True):
    """The last good value of a source and how old it is; `problem` is set when the last try failed."""

    value: T | None = None
    taken: float | None = None  # when the last good value was taken
    took: float = 0.0  # how long it took
    problem: Problem | None = None
    failing_since: float | None = None


# --- the unit --------------------------------------------------------------------------------------------------------


class Unit(Value, frozen=True, kw_only=True):
    """What systemd says of one service (org.freedesktop.systemd1.Unit and .Service properties)."""

    name: str
    load: str = "loaded"  # LoadState: loaded, not-found, bad-setting, error, masked
    active: str = "inactive"  # ActiveState: active, reloading, inactive, failed, activating, deactivating
    sub: str = "dead"  # SubState: running, auto-restart, start, dead, failed, ...
    result: str = "success"  # Result: success, exit-code, signal, oom-kill, timeout, watchdog, start-limit-hit, ...
    enabled: str = ""  # UnitFileState; "" unknown
    description: str = ""
    main_pid: int = 0  # 0: none
    restarts: int = 0  # NRestarts
    restarts_per_minute: float | None = None  # over the last five minutes that were watched
    since: float | None = None  # StateChangeTimestamp
    started: float | None = None  # ExecMainStartTimestamp
    exited: float | None = None  # ExecMainExitTimestamp
    exit_code: str = ""  # how the main process ended last: "exited", "killed", "dumped", ""
    exit_status: int = 0  # its exit status, or the signal number when killed or dumped
    invocation: str = ""
    fragment: str = ""
    drop_ins: tuple[str, ...] = ()
    status_text: str = ""  # what the service said of itself by sd_notify STATUS=
    cgroup: str = ""  # ControlGroup
    user: str = ""
    memory_now: int | None = None
    memory_peak: int | None = None  # of this invocation, from the cgroup, or the highest value seen
    memory_max: int | None = None  # MemoryMax; None: no limit
    memory_enforced: bool | None = None  # the cgroup file holds the limit; None: could not be read
    tasks_now: int | None = None
    tasks_max: int | None = None
    restart: str = "no"  # Restart=
    restart_sec: float = 0.1
    timeout_stop: float = 90.0  # TimeoutStopSec=
    start_limit_interval: float = 10.0
    start_limit_burst: int = 5
    start_limit_hit: bool = False  # journal: "Start request repeated too quickly", or Result=start-limit-hit
    watchdog_sec: float | None = None
    last_log: tuple[str, ...] = ()  # last journal lines of a unit that failed or restarts, newest last
    last_words: str = ""  # the last of them that the service itself wrote

    @property
    def instance(self) -> str:
        """The part between @ and the last dot, or "" for a unit that is no instance."""
        stem, _, _ = self.name.rpartition(".")
        return stem.partition("@")[2]

    @property
    def template(self) -> str:
        """`mail-worker@1.service` -> `mail-worker@.service`; "" for a unit that is no instance."""
        return template_of(self.name)


@lru_cache(maxsize=8192)
def template_of(name: str) -> str:
    """`mail-worker@1.service` -> `mail-worker@.service`; "" for a unit that is no instance."""
    stem, _, suffix = name.rpartition(".")
    prefix, at, instance = stem.partition("@")
    return f"{prefix}@.{suffix}" if at and instance else ""


# --- the process -----------------------------------------------------------------------------------------------------


class Ident(msgspec.Struct, frozen=True, order=True):
    """Who a process is: a pid alone is reused. `start` is field 22 of /proc/PID/stat, in clock ticks since boot."""

    boot_id: str
    pid: int
    start: int


OwnerKind = Literal[
    "systemd",  # a unit of the system manager
    "systemd-user",  # a unit of a user manager
    "cron",
    "supervisord",
    "pm2",
    "forever",
    "runit",  # runit, daemontools, s6
    "screen",  # screen or tmux
    "container",
    "session",  # a login session
    "unknown",
]


class Owner(Value, frozen=True, kw_only=True):
    """The mechanism that started a process and would start it again, with the evidence as sentences."""

    kind: OwnerKind
    name: str = ""  # the unit, the account whose crontab, the supervisor's program name
    detail: str = ""  # "crontab of deploy, line 4"
    evidence: tuple[str, ...] = ()


class Ancestor(Value, frozen=True, kw_only=True):
    pid: int
    name: str  # /proc/PID/comm


class Process(Value, frozen=True, kw_only=True):
    """One process that matches a role or runs in one of its units."""

    ident: Ident
    role: str = ""  # the role it was matched to, "" when only its unit's cgroup holds it
    ppid: int = 0
    name: str = ""
    command: tuple[str, ...] = ()
    user: str = ""
    uid: int = -1
    state: str = ""  # one letter as in ps: R S D T Z
    started: float | None = None
    cgroup: str = ""
    unit: str = ""  # the unit its cgroup belongs to
    ancestors: tuple[Ancestor, ...] = ()  # parent first, up to pid 1
    children: tuple[int, ...] = ()
    rss: int | None = None
    cpu: float | None = None  # share of one core since the last pass
    cpu_seconds: float | None = None
    idle_for: float | None = None  # for how long no CPU was used, as watched
    session: int | None = None  # audit session id; None: none or not permitted
    login_uid: int | None = None
    marks: tuple[str, ...] = ()  # names (never values) of telling environment variables
    denied: tuple[str, ...] = ()  # what could not be read, with the reason
    owner: Owner = Owner(kind="unknown")
    main: bool = True  # False: a helper (child of another process of the same role and owner)


# --- the host, the account, the schedules ----------------------------------------------------------------------------


class Account(Value, frozen=True, kw_only=True):
    user: str
    uid: int
    processes: int
    tasks: int  # threads
    limit: int | None = None  # soft RLIMIT_NPROC of its processes, or TasksMax of its slice; None: unlimited or unknown
    limit_source: str = ""
    memory: int | None = None  # sum of RSS


class Host(Value, frozen=True, kw_only=True):
    name: str
    boot_id: str
    memory_total: int | None = None
    memory_available: int | None = None
    load: tuple[float, float, float] | None = None
    cpus: int = 1
    processes: int = 0
    accounts: tuple[Account, ...] = ()
    now: float = 0.0  # the host's clock when this was taken


class CronLine(Value, frozen=True, kw_only=True):
    """One active line of a crontab that was understood well enough to name."""

    owner: str  # the account the command runs as
    source: str  # "/var/spool/cron/crontabs/deploy", "/etc/cron.d/reports"
    line: int  # 1-based; the three comment lines crontab(1) writes above are not counted, as in `crontab -e`
    schedule: str  # the five fields, or @reboot
    command: str  # after % handling, as the shell gets it
    per_hour: float | None = None  # how often it fires on average; None: only at boot, or never
    roles: tuple[str, ...] = ()  # roles whose worker it would start
    kind: Literal["launcher", "watchdog", "periodic", "at-boot", "unknown"] = "unknown"
    workers_per_tick: int | None = None
    faults: tuple[str, ...] = ()  # "guard-matches-itself", "guard-never-matches", ...
    evidence: tuple[str, ...] = ()


class Hello(Value, frozen=True, kw_only=True):
    """What an agent says first."""

    protocol: int
    version: str
    host: str
    boot_id: str
    user: str
    uid: int
    manager: Literal["system", "user", "none"]
    systemd: str = ""  # "252 (252.39-1~deb12u1)"; "" when there is none
    uptime: float | None = None  # seconds since boot when this was said, by the clock of Ident.start
    ticks: int = 100  # of that clock in a second
    read_only: bool = False  # it refuses everything that changes something


class PidState(Value, frozen=True, kw_only=True):
    """Who has a pid now. The holders of running jobs are asked for by pid, whether they match a role or not."""

    pid: int
    start: int | None = None  # start time in clock ticks since boot; None: no such process
    name: str = ""


class DatabaseClient(Value, frozen=True, kw_only=True):
    """The other end of one connection to the database, as seen on this host. One connection may have several: a child
    has it from its parent."""

    backend: int = 0  # pid of the server process; 0: one of those that are not told apart (unix sockets)
    port: int = 0  # its TCP port; 0: a unix socket
    here: bool = True  # False: it is not among this host's sockets: its client runs elsewhere, or has just gone
    ident: Ident | None = None  # None: elsewhere, or it is here but whose it is may not be seen
    name: str = ""
    user: str = ""  # account of the process, or of the socket where the process may not be seen
    unit: str = ""  # the unit its cgroup belongs to


class HostFacts(Value, frozen=True, kw_only=True):
    """Everything the agent has said so far."""

    hello: Hello | None = None
    agent: Reading[Hello] = Reading()
    units: Reading[tuple[Unit, ...]] = Reading()
    units_partial: bool = False  # the units are known by their states alone, the rest is being read
    reloads: int = 0  # how often systemd has read its files again since the agent began
    processes: Reading[tuple[Process, ...]] = Reading()
    host: Reading[Host] = Reading()
    schedules: Reading[tuple[CronLine, ...]] = Reading()
    holders: Reading[tuple[PidState, ...]] = Reading()
    clients: Reading[tuple[DatabaseClient, ...]] = Reading()  # asked for when a row's holder has no pid
    uptime: float | None = None  # of the host when it last said something, at least; no setting of a clock moves it


# --- details of one unit and of the host, asked for when a person looks ----------------------------------------------


class LogLine(Value, frozen=True, kw_only=True):
    """One entry of the journal."""

    at: float
    unit: str = ""
    priority: int = 6  # syslog: 0 emergency ... 3 error, 4 warning, 5 notice, 6 info, 7 debug
    text: str = ""
    pid: int | None = None
    by_manager: bool = False  # systemd wrote it about the unit
    cursor: str = ""


class UnitFile(Value, frozen=True, kw_only=True):
    """The fragment or a drop-in, in the order systemd reads them; secrets in Environment= are masked already."""

    path: str
    text: str = ""
    problem: str = ""  # why it could not be read


class TreeProcess(Value, frozen=True, kw_only=True):
    """One process in a tree, in the order it is printed."""

    ident: Ident
    depth: int = 0
    user: str = ""
    name: str = ""
    command: tuple[str, ...] = ()
    state: str = ""
    rss: int | None = None
    cpu_seconds: float | None = None
    started: float | None = None
    role: str = ""
    owner: Owner = Owner(kind="unknown")


class UnitDetail(Value, frozen=True, kw_only=True):
    """What the detail of a worker shows of its unit."""

    name: str
    properties: tuple[tuple[str, str], ...] = ()  # the ones that matter, formatted as `systemctl show` does
    files: tuple[UnitFile, ...] = ()
    tree: tuple[TreeProcess, ...] = ()
    log: tuple[LogLine, ...] = ()  # newest last
    log_problem: str = ""  # why there is no log: not permitted, never ran, no journal


class HostDetail(Value, frozen=True, kw_only=True):
    """Process trees under the owner of their root, biggest first."""

    trees: tuple[TreeProcess, ...] = ()
    cut: int = 0  # processes that were left out


# --- the rows --------------------------------------------------------------------------------------------------------

JobState = Literal["waiting", "running", "done", "failed"]


class Count(msgspec.Struct, frozen=True):
    """A number and how well it is known; shown as "412", "> 10 000" or "~ 4.6 M"."""

    n: int
    kind: Literal["exact", "at-least", "estimate"] = "exact"


class Holder(Value, frozen=True, kw_only=True):
    """Whoever has claimed a running job, as the row says."""

    host: str = ""
    unit: str = ""
    pid: int | None = None
    start: int | None = None  # start time of the process in clock ticks since boot
    boot_id: str = ""
    text: str = ""  # as the queue writes it
    worker: str = ""  # its id in the queue's table of workers (QueueWorker.id)
    pruned: bool = False  # that table has no such row any more: the queue removed it as stale


class Job(Value, frozen=True, kw_only=True):
    id: str
    queue: str = ""
    type: str = ""
    state: JobState = "waiting"
    attempts: int = 0
    max_attempts: int | None = None
    reclaims: int | None = None  # how often it was taken from its holder; None: the queue does not count that
    priority: int | None = None
    run_after: float | None = None
    created: float | None = None
    started: float | None = None
    finished: float | None = None
    lease_expires: float | None = None
    heartbeat: float | None = None
    overdue: float | None = None  # seconds past the lease by the database's clock; negative: still within it
    heartbeat_age: float | None = None  # by the database's clock
    running_for: float | None = None  # by the database's clock
    waiting_for: float | None = None  # past run_after, by the database's clock
    holder: Holder | None = None
    token: str = ""  # the fencing token
    error: str = ""
    payload: str = ""  # JSON text, cut at payload_size when large
    payload_size: int = 0
    ended: str = ""  # running as the row says, yet the queue holds its end elsewhere: a clause, "succeeded 12 min ago"


class QueueCounts(Value, frozen=True, kw_only=True):
    """One queue (a role's rows) at one moment."""

    queue: str
    types: tuple[str, ...] = ()  # only the rows of these types were counted; () : all
    waiting: Count = Count(0)  # due now
    scheduled: Count = Count(0)  # waiting, but run_after lies ahead
    oldest_waiting: float | None = None  # age of the oldest due job
    running: Count = Count(0)
    stuck: Count = Count(0)  # running, lease expired
    failed: Count = Count(0)
    done: Count | None = None  # never counted in full; None: not kept, or nothing is known
    done_per_minute: float | None = None  # over the last five minutes
    failed_per_minute: float | None = None
    last_finished: float | None = None  # age of the youngest finished (done or failed) job
    ends_told: bool = True  # False: the queue does not tell when jobs end, so that none is known means nothing
    paused: tuple[str, ...] = ()  # its queues that give out no job, because somebody has paused them


class TrendPoint(Value, frozen=True, kw_only=True):
    """One minute of a role's rows; None: not known (the console was not watching, or the queue keeps no such rows)."""

    at: float  # start of the minute, epoch seconds by the database's clock
    waiting: int | None = None
    oldest: float | None = None
    done: int | None = None
    failed: int | None = None


class Trend(Value, frozen=True, kw_only=True):
    """The last minutes of one queue (of the same queue and types as its QueueCounts), oldest first."""

    queue: str
    types: tuple[str, ...] = ()
    points: tuple[TrendPoint, ...] = ()


JobSort = Literal["id", "age", "priority", "attempts", "overdue", "finished"]


class JobQuery(Value, frozen=True, kw_only=True):
    """A page of jobs. `after` is `JobPage.next` of the page before; None starts anew."""

    state: Literal["waiting", "running", "stuck", "failed", "done"] = "waiting"
    queues: tuple[str, ...] = ()  # (): those of the roles
    types: tuple[str, ...] = ()
    contains: str = ""  # in the id, the type or the error, without regard to case
    sort: JobSort = "id"
    descending: bool = False
    limit: int = 100
    after: str | None = None


class JobPage(Value, frozen=True, kw_only=True):
    jobs: tuple[Job, ...] = ()
    total: Count | None = None  # of the query without its page; None: not counted
    next: str | None = None  # None: there are no more
    note: str = ""  # what the page leaves out, one clause: "sorted among the newest 10 000 jobs only"


class Backend(Value, frozen=True, kw_only=True):
    """One client's connection to the queue's database, from pg_stat_activity (backend_type 'client backend')."""

    pid: int  # of the server process
    address: str = ""  # client_addr; "": a unix socket
    port: int | None = None  # client_port; None: a unix socket
    application: str = ""
    user: str = ""
    own: bool = False  # worktop's own
    hidden: bool = False  # its client may not be seen: it is another role's, and pg_read_all_stats is not granted
    listens: bool | None = None  # its last statement was a LISTEN of the queue (one per worker); None: not told
    quiet: float | None = None  # seconds since its state changed last (state_change), by the database's clock


class QueueWorker(Value, frozen=True, kw_only=True):
    """One row of the queue's table of workers."""

    id: str  # as Holder.worker names it
    heartbeat_age: float | None = None  # seconds, by the database's clock
    host: str = ""  # where the queue says so
    pid: int | None = None
    queues: tuple[str, ...] = ()  # (): not told, or all


class QueueFacts(Value, frozen=True, kw_only=True):
    server: str = ""  # "PostgreSQL 18.1"
    user: str = ""
    database: str = ""
    address: str = ""  # "127.0.0.1:5432" or the socket's folder; never a DSN
    now: float = 0.0  # the database's clock
    skew: float | None = None  # database clock minus the clock of this machine
    preset: str = ""
    recognised: str = ""  # how the queue was told: "procrastinate 3.x, 18/18 columns matched"
    counts: tuple[QueueCounts, ...] = ()
    running: tuple[Job, ...] = ()  # the running jobs, longest overdue first, at most `running_cap`
    running_cap: int = 500
    trends: tuple[Trend, ...] = ()  # read less often than the counts
    trends_taken: float | None = None
    statistics_age: float | None = None  # of what the estimates among the counts are made from, seconds
    # for queues whose rows do not name a process; None: not read
    backends: tuple[Backend, ...] | None = None  # every client's connection to the database
    workers: tuple[QueueWorker, ...] | None = None
    heartbeat_limit: float | None = None  # seconds after which the queue takes a heartbeat for expired
    server_port: int = 0  # current_setting('port'); 0: not read


class Check(Value, frozen=True, kw_only=True):
    """One line of `worktop doctor`."""

    name: str
    state: Literal["ok", "warning", "failed"]
    text: str
    remedy: str = ""


# --- the fleet -------------------------------------------------------------------------------------------------------

WorkerState = Literal[
    "running",
    "starting",
    "stopping",
    "restarting",  # waits for its next start
    "looping",  # restarts again and again
    "start-limit",  # systemd gave up
    "memory-killed",
    "failed",
    "stopped",
    "missing",  # desired, but there is no such unit, or it was never started
    "hung",
    "stray",  # a process of the role outside its unit
    "unknown",
]

# ALIVE: lives, and its lease is valid. FINISHED_BUT_CLAIMED: the queue holds the job's end, its claim is left over.
Verdict = Literal["DEAD", "ALIVE", "ALIVE_SLOW", "HUNG", "UNKNOWN", "FINISHED_BUT_CLAIMED"]


class Claim(Value, frozen=True, kw_only=True):
    """A running job with what the host's facts prove about its holder."""

    job: Job
    role: str
    verdict: Verdict
    evidence: tuple[str, ...] = ()
    stuck: bool = False  # running, and the lease has expired or the holder is dead
    worker: str = ""  # key of the worker that holds it, when it is known


class Worker(Value, frozen=True, kw_only=True):
    """One running or desired instance of a role."""

    key: str  # the unit's name, or "pid:start" of a stray's main process
    role: str
    name: str  # short: "@1", "pid 4410"
    state: WorkerState
    desired: bool = True
    why: str = ""  # one clause: "exit status 1 after 0.3 s, 12 restarts"
    unit: Unit | None = None
    processes: tuple[Process, ...] = ()
    owner: Owner = Owner(kind="unknown")
    since: float | None = None
    memory: int | None = None
    memory_peak: int | None = None
    memory_max: int | None = None
    cpu: float | None = None
    jobs: tuple[str, ...] = ()  # ids of the jobs it holds


class RoleStatus(Value, frozen=True, kw_only=True):
    role: Role
    workers: tuple[Worker, ...] = ()
    running: int = 0
    desired: int = 0
    owners: tuple[str, ...] = ()  # "systemd", "cron (deploy)", in order of their number of workers
    queue: QueueCounts | None = None  # None: the queue has not been read
    stuck: int | None = None
    trend: Trend | None = None
    memory: int | None = None
    memory_allowed: int | None = None  # None: no limit on at least one worker


Severity = Literal["error", "warning", "note"]


class Finding(Value, frozen=True, kw_only=True):
    """Something a person should know, with the evidence and what mends it."""

    code: str  # "two-owners"; stable, documented in docs/findings.md
    severity: Severity
    role: str = ""  # "" for the host and the sources
    what: str
    evidence: tuple[str, ...] = ()
    remedy: str = ""  # what mends it, a sentence
    next: str = ""  # the next step in two or three words: "retire the launcher"

    @property
    def key(self) -> str:
        return f"{self.role}/{self.code}/{self.what if not self.role else ''}"


class SourceStatus(Value, frozen=True, kw_only=True):
    name: SourceName
    state: Literal["live", "waiting", "down", "denied", "absent"]
    age: float | None = None  # of the last good value
    text: str = ""  # "units now", "queue 42 s old: connection refused"
    problem: Problem | None = None


class Fleet(Value, frozen=True, kw_only=True):
    """Everything on the screen, joined, at one moment."""

    now: float
    hello: Hello | None = None
    host: Host | None = None
    queue: QueueFacts | None = None
    limits: Limits = Limits()
    roles: tuple[RoleStatus, ...] = ()
    claims: tuple[Claim, ...] = ()
    findings: tuple[Finding, ...] = ()
    sources: tuple[SourceStatus, ...] = ()
    schedules: tuple[CronLine, ...] = ()
