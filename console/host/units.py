"""Properties of systemd as a Unit: pure, from the dictionaries that GetAll and PropertiesChanged give."""

from __future__ import annotations

from collections import deque
from typing import Any

from console.fleet.model import Unit
from console.host.bus import Properties, text

NOT_SET = 2**64 - 1  # "[not set]" and "infinity" of 64-bit properties

# The properties a Unit is made of; the other 370 are dropped at once (Environment= may hold secrets).
_KEPT = (
    "LoadState ActiveState SubState UnitFileState Description StateChangeTimestamp InvocationID FragmentPath "
    "DropInPaths StartLimitIntervalUSec StartLimitBurst Result MainPID NRestarts ExecMainStartTimestamp "
    "ExecMainExitTimestamp ExecMainCode ExecMainStatus StatusText ControlGroup User MemoryMax TasksMax Restart "
    "RestartUSec TimeoutStopUSec WatchdogUSec RestartPreventExitStatus"
)
KEPT = frozenset(name.encode() for name in _KEPT.split())

# What a person must see at once; of everything else (STATUS=, timestamps, limits) the next reading tells.
STATE = frozenset({b"LoadState", b"ActiveState", b"SubState", b"Result", b"MainPID", b"NRestarts"})

# wait(2) codes: CLD_EXITED, CLD_KILLED, CLD_DUMPED
_EXIT_CODES = {1: "exited", 2: "killed", 3: "dumped"}


def keep(properties: Properties) -> Properties:
    return {name: value for name, value in properties.items() if name in KEPT}


def unit_from(name: str, properties: Properties) -> Unit:
    """The unit without what is measured: memory, tasks, restarts per minute and journal lines are added elsewhere."""

    def number(key: bytes, default: int = 0) -> int:
        value = properties.get(key)
        return value if isinstance(value, int) else default

    def limit(key: bytes) -> int | None:
        value = number(key, NOT_SET)
        return None if value >= NOT_SET else value

    def seconds(key: bytes, default: float) -> float:
        value = number(key, -1)
        return default if value < 0 else value / 1e6  # infinity is 584 542 years: JSON has no infinity

    def moment(key: bytes) -> float | None:
        value = number(key)
        return value / 1e6 if 0 < value < NOT_SET else None

    watchdog = number(b"WatchdogUSec")
    drop_ins = properties.get(b"DropInPaths")
    active = text(properties.get(b"ActiveState")) or "inactive"
    sub = text(properties.get(b"SubState")) or "dead"
    if active in ("inactive", "failed") and _is_being_started(properties):
        active, sub = "activating", "start"
    return Unit(
        name=name,
        load=text(properties.get(b"LoadState")) or "not-found",
        active=active,
        sub=sub,
        result=text(properties.get(b"Result")) or "success",
        enabled=text(properties.get(b"UnitFileState")),
        description=text(properties.get(b"Description")),
        main_pid=number(b"MainPID"),
        restarts=number(b"NRestarts"),
        since=moment(b"StateChangeTimestamp"),
        started=moment(b"ExecMainStartTimestamp"),
        exited=moment(b"ExecMainExitTimestamp"),
        exit_code=_EXIT_CODES.get(number(b"ExecMainCode"), ""),
        exit_status=number(b"ExecMainStatus"),
        invocation=invocation_of(properties),
        fragment=text(properties.get(b"FragmentPath")),
        drop_ins=tuple(text(path) for path in drop_ins) if isinstance(drop_ins, list) else (),
        status_text=text(properties.get(b"StatusText")),
        # its end is not signalled: the last one is remembered after the unit has ended
        cgroup="" if active in ("inactive", "failed") else text(properties.get(b"ControlGroup")),
        user=text(properties.get(b"User")),
        memory_max=limit(b"MemoryMax"),
        tasks_max=limit(b"TasksMax"),
        restart=text(properties.get(b"Restart")) or "no",
        restart_sec=seconds(b"RestartUSec", 0.1),
        timeout_stop=seconds(b"TimeoutStopUSec", 90.0),
        start_limit_interval=seconds(b"StartLimitIntervalUSec", 10.0),
        start_limit_burst=number(b"StartLimitBurst", 5),
        watchdog_sec=watchdog / 1e6 if 0 < watchdog < NOT_SET else None,
    )


def _is_being_started(properties: Properties) -> bool:
    """Its main process is younger than its state: systemd 252 signals the new process, and the result of the run before
    cleared, some milliseconds before the state. A process left behind by KillMode=none is older than the state."""
    started, since = properties.get(b"ExecMainStartTimestamp") or 0, properties.get(b"StateChangeTimestamp") or 0
    return bool(properties.get(b"MainPID")) and started > since


def invocation_of(properties: Properties) -> str:
    """InvocationID comes as a list of 16 numbers; "" when the unit never ran."""
    value = properties.get(b"InvocationID")
    return bytes(value).hex() if isinstance(value, list) and value else ""


def apply(known: Properties, body: Any, ran: set[str], name: str) -> frozenset[bytes]:
    """Merge one PropertiesChanged(interface, changed, invalidated) into what is known; what became different."""
    if not isinstance(body, list | tuple) or len(body) < 2 or not isinstance(body[1], dict):
        return frozenset()
    news = {key: value for key, value in keep(body[1]).items() if known.get(key) != value}
    if not news:
        return frozenset()
    before = invocation_of(known)
    known.update(news)
    if (invocation_of(known) != before or b"MainPID" in news or b"ActiveState" in news) and known.get(b"MainPID"):
        ran.add(name)
    return frozenset(news)


def prevents_restart(properties: Properties) -> bool:
    """RestartPreventExitStatus= names the way the main process ended: then `failed` is no start limit."""
    value: Any = properties.get(b"RestartPreventExitStatus")
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    statuses, signals = value
    status = properties.get(b"ExecMainStatus")
    return status in (statuses if properties.get(b"ExecMainCode") == 1 else signals)


def would_be_restarted(unit: Unit) -> bool:
    """Restart= covers the way the service ended (the table under Restart= in systemd.service(5))."""
    if unit.restart in ("no", ""):
        return False
    if unit.result == "success":
        return unit.restart in ("always", "on-success")
    if unit.restart in ("always", "on-failure"):
        return True
    covered = {
        "on-abnormal": {"signal", "core-dump", "timeout", "watchdog", "oom-kill"},
        "on-abort": {"signal", "core-dump"},
        "on-watchdog": {"watchdog"},
    }
    return unit.result in covered.get(unit.restart, set())


class Restarts:
    """How often one unit started again over at most WINDOW watched seconds.

    NRestarts counts automatic restarts and falls back to 0 on a manual start or `systemctl reset-failed`; a new
    invocation without a new count is a restart by hand. Both are restarts.
    """

    WINDOW = 300.0
    SHORTEST = 10.0  # two restarts within the first watched second are not 120 per minute

    def __init__(self, watched_since: float) -> None:
        self._since = watched_since
        self._events: deque[float] = deque()
        self._count: int | None = None
        self._invocation = ""
        self._counted = False  # the rise of NRestarts that belongs to the next invocation has been counted

    def saw(self, count: int, invocation: str, now: float) -> None:
        if self._count is None:
            self._count, self._invocation = count, invocation
            return
        risen = count - self._count
        if risen > 0:
            self._events.extend([now] * min(risen, 1000))
            self._counted = True
        self._count = count
        if invocation and invocation != self._invocation:
            if self._invocation and not self._counted:
                self._events.append(now)
            self._invocation = invocation
            self._counted = False

    def per_minute(self, now: float) -> float | None:
        while self._events and self._events[0] < now - self.WINDOW:
            self._events.popleft()
        watched = now - self._since
        if watched < self.SHORTEST:
            return None
        return round(len(self._events) * 60 / min(watched, self.WINDOW), 1)
