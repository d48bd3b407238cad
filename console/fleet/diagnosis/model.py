"""The values of a diagnosis: what was looked at, what each question found, and the verdict.

Text is raw where it came from outside, as in console/fleet/model.py.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from console.fleet.model import Claim, Fleet, Ident, Job, RoleStatus, UnitDetail, Value, Worker

DiagnosisVerdict = Literal[
    "healthy",
    "working slowly",
    "hung",
    "crash loop",
    "stopped on purpose",
    "killed by limit",
    "misconfigured",
    "owned by somebody else",
    "not permitted to see",
]
StepName = Literal[
    "process", "children", "ending", "restarts", "health", "progress", "rows", "owner", "unit", "near", "limits"
]
StepState = Literal["ok", "warning", "fault", "unknown"]

# a verdict on several workers is the one of these that comes first
WORST_FIRST: tuple[DiagnosisVerdict, ...] = (
    "owned by somebody else",
    "crash loop",
    "killed by limit",
    "hung",
    "misconfigured",
    "not permitted to see",
    "working slowly",
    "stopped on purpose",
    "healthy",
)
FINE: frozenset[DiagnosisVerdict] = frozenset({"healthy", "working slowly"})
FINISHES_JOBS = "finishes jobs"  # Role.health: no program is asked, the queue is


class Examined(Value, frozen=True, kw_only=True):
    """One question of the examination and its answer."""

    name: StepName
    asked: str  # the question, a sentence
    state: StepState
    answer: str  # a sentence
    evidence: tuple[str, ...] = ()


class Examination(Value, frozen=True, kw_only=True):
    """Everything that was asked about one worker, or about a role as a whole, in the order it was asked."""

    role: str
    key: str = ""  # of the worker: its unit, or "pid:start"; "": the role as a whole
    name: str = ""  # short: "@2", "pid 4410"
    steps: tuple[Examined, ...] = ()

    def step(self, name: StepName) -> Examined | None:
        return next((step for step in self.steps if step.name == name), None)


class Diagnosis(Value, frozen=True, kw_only=True):
    """One verdict with what it rests on. It changes nothing and asks for nothing to be changed by itself."""

    role: str
    key: str = ""
    name: str = ""
    verdict: DiagnosisVerdict
    sentence: str  # what is the case
    next: str  # the next step, a sentence; may be "do not restart: …"
    do_not: str  # why not to restart it
    commands: tuple[str, ...] = ()  # what the next step is done with, to be copied
    steps: tuple[Examined, ...] = ()


# --- what is looked at for it ---------------------------------------------------------------------------------------


class Run(Value, frozen=True, kw_only=True):
    """One run of a unit (one invocation), as its journal tells."""

    invocation: str = ""
    began: float | None = None  # of its first entry, epoch seconds
    ended: float | None = None  # of systemd's word on its end; None: it has not ended, or that is not in the journal
    lines: tuple[str, ...] = ()  # the last ones that the service itself wrote, newest last
    manager: tuple[str, ...] = ()  # the last ones that systemd wrote about it


class MainProcess(Value, frozen=True, kw_only=True):
    """The main process when it was looked at; None: not known, or not permitted."""

    ident: Ident
    state: str = ""  # one letter as in ps
    command: tuple[str, ...] = ()  # secrets are masked
    cgroup: str = ""
    started: float | None = None  # epoch seconds
    program: str | None = None  # what /proc/PID/exe leads to; ends with " (deleted)" when the file was replaced
    open_files: int | None = None
    open_files_limit: int | None = None  # soft; None also: unlimited
    waits_in: str = ""  # the kernel function it sleeps in
    denied: tuple[str, ...] = ()  # what could not be read, with the reason


class Starter(Value, frozen=True, kw_only=True):
    """Something beside the role's own unit that starts workers of the role, or would. Crontabs are known elsewhere."""

    kind: Literal["unit", "timer", "supervisord", "pm2", "init script"]
    name: str  # "mail.service", "program:mail"
    path: str = ""  # the file that says so
    text: str = ""  # its command line
    active: str = ""  # ActiveState of a unit or timer; "" not known
    enabled: str = ""


class Health(Value, frozen=True, kw_only=True):
    """What the health check of the role said."""

    check: str  # the command or address
    ok: bool | None = None  # None: it was not asked, the text says why
    text: str = ""
    took: float = 0.0


class Looked(Value, frozen=True, kw_only=True):
    """What the host agent looked at for one worker."""

    at: float = 0.0  # epoch seconds of the host
    booted: float = 0.0  # when the host was booted, epoch seconds
    detail: UnitDetail | None = None  # None: it runs in no unit
    main: MainProcess | None = None
    gone: bool = False  # there is no process with the main pid
    runs: tuple[Run, ...] = ()  # the last ones, newest last
    runs_problem: str = ""
    starters: tuple[Starter, ...] = ()
    starters_problem: str = ""  # what could not be read
    health: Health | None = None  # None: the role has none that the agent runs
    problems: tuple[str, ...] = ()  # parts of this that failed


class QueueRoom(Value, frozen=True, kw_only=True):
    """What the queue was asked for a diagnosis; None: not known."""

    connections: int | None = None  # of all clients
    connections_max: int | None = None  # for roles that are not superusers
    paused: tuple[str, ...] = ()  # queues that give out nothing
    finished: tuple[Job, ...] = ()  # the youngest finished jobs of the role, newest first
    problem: str = ""


class Case(NamedTuple):
    """One worker with everything that is known of it."""

    fleet: Fleet
    status: RoleStatus
    worker: Worker
    claims: tuple[Claim, ...] = ()  # of the jobs it holds
    looked: Looked | None = None  # None: the agent was not asked
    room: QueueRoom | None = None

    @property
    def properties(self) -> dict[str, str]:
        """Of the unit, as `systemctl show` formats them."""
        return dict(self.looked.detail.properties) if self.looked is not None and self.looked.detail else {}

    @property
    def pid(self) -> int:
        """The main process; 0: none."""
        unit = self.worker.unit
        if unit is not None:
            return unit.main_pid
        return self.worker.processes[0].ident.pid if self.worker.processes else 0
