"""The host agent: one process that reads this host and tells the console what is different.

It imports neither Textual nor psycopg, and ends when its stdin closes. It changes nothing on the host but what it is
asked for by the requests of operations.py, and nothing at all with --read-only.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import signal
import socket
import sys
import time

from console import __version__, heap
from console.ending import end
from console.errors import HostError, Problem
from console.fleet.model import CronLine, Hello, Host, Unit
from console.host import accounts, holders, procfs, protocol
from console.host.bus import BusLost, Connection
from console.host.cgroups import Hierarchy
from console.host.channel import Channel
from console.host.crontabs import Crontabs
from console.host.deltas import Told
from console.host.operations import Operations
from console.host.processes import Pass, Scanner
from console.host.protocol import LookUp, Watch
from console.host.requests import Requests
from console.host.systemd import UnitTable
from console.host.telling import ProcessTelling
from console.host.unit_source import UnitSource

SHORTEST_INTERVAL = 0.2
RESTING = 4  # after a refresh it rests at least this many times as long as that took: 20 % of a core at most
URGENT_SECONDS = 0.2  # how often the memory of young units, and of those near their limit, is read
_BACK_OFF = (0.25, 0.5, 1.0, 2.0, 5.0)

_MORE_RIGHTS = "run the agent with more rights: agent in [host]"
NO_SYSTEMD = Problem("units", "systemd is not running here", "processes, crontabs and the queue are shown without it")


class Agent:
    """Sources in, lines out. Nothing is read before the console has said what to watch."""

    def __init__(self, user_manager: bool, read_only: bool = False) -> None:
        self._user_manager = user_manager
        self._read_only = read_only
        self._end = asyncio.Event()
        self._tick = asyncio.Event()
        self._watching = asyncio.Event()
        self._watch = Watch()
        self._channel = Channel(self._heard, self._end.set)
        self._hierarchy = Hierarchy()
        self._scanner = Scanner()
        self._crontabs = Crontabs()
        self._table = UnitTable(user_manager, self._states_changed, self._tell_states)
        self._units = UnitSource(self._table, self._hierarchy, user_manager)
        self._requests = Requests(
            self._channel,
            self._scanner,
            self._hierarchy,
            lambda: self._table.properties,
            user_manager,
            read_only,
            lambda: self._watch.roles,
        )
        self._operations = Operations(self._channel, self._scanner, lambda: self._watch.roles, user_manager, read_only)
        self._told_units: Told[Unit] = Told()
        self._told_processes = ProcessTelling()
        self._told_host: Host | None = None
        self._told_schedules: tuple[tuple[CronLine, ...], Problem | None] | None = None
        self._connected = False
        self._asked_first = False
        self._asking: asyncio.Task[None] | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            loop.add_signal_handler(number, self._end.set)
        self._channel.send(protocol.encode(protocol.Greeting(self._hello())))
        tasks = [
            asyncio.create_task(work)
            for work in (self._follow_systemd(), self._refresh_often(), self._measure_urgent())
        ]
        ended = asyncio.create_task(self._end.wait())
        try:
            done, _ = await asyncio.wait([ended, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                if task is not ended:
                    task.result()
        finally:
            for task in [ended, *tasks, *([self._asking] if self._asking else [])]:
                await end(task)
            await self._requests.close()
            await self._operations.close()
            self._table.close()
            await self._channel.drained(0.5)

    def _hello(self) -> Hello:
        """The manager and its version are asked once here, so that the first line tells whether there is one."""
        manager, version = "none", ""
        try:
            connection = Connection(self._user_manager)
            try:
                version = connection.version()
                manager = "user" if self._user_manager else "system"
            finally:
                connection.close()
        except HostError:
            manager = "none"
        return Hello(
            protocol=protocol.PROTOCOL,
            version=__version__,
            host=socket.gethostname(),
            boot_id=self._scanner.boot_id,
            user=self._scanner.account(os.geteuid()) or getpass.getuser(),
            uid=os.geteuid(),
            manager="user" if manager == "user" else "system" if manager == "system" else "none",
            systemd=version,
            uptime=procfs.uptime(),
            ticks=procfs.TICKS,
            read_only=self._read_only,
        )

    # --- requests ---------------------------------------------------------------------------------------------------

    def _heard(self, line: bytes | HostError) -> None:
        number = 0
        try:
            if isinstance(line, HostError):
                raise line
            request = protocol.decode_request(line)
            number = request.id
            if request.method == "watch":
                self._start_watching(protocol.decode_watch(request))
            elif request.method == "look_up":
                self._tell_holders(protocol.decode_params(request, LookUp).pids)
            elif request.method == "refresh":
                self._tick.set()
            elif self._requests.take(request) or self._operations.take(request):
                return
            elif request.method != "ping":
                raise HostError(
                    f"request {request.method[:40]}", "no such method", f"known: {', '.join(protocol.METHODS)}"
                )
            self._channel.send(protocol.encode(protocol.Response(number, "ok")))
        except HostError as error:
            self._channel.send(protocol.encode(protocol.Failure(number, error.problem)))

    def _tell_holders(self, pids: tuple[int, ...]) -> None:
        started = time.monotonic()
        states, refused = holders.look_up(pids)
        self._scanner.holders = frozenset(pids)
        if refused:
            why = f"pid {refused} belongs to another account and is hidden from this one"
            update = protocol.HoldersUpdate(problem=Problem("holders of running jobs", why, _MORE_RIGHTS))
        else:
            update = protocol.HoldersUpdate(taken=time.time(), took=_since(started), full=True, items=states)
        self._channel.send(protocol.encode(update))

    def _start_watching(self, watch: Watch) -> None:
        before, self._watch = self._watch, watch
        if self._watching.is_set() and watch.roles == before.roles:  # only how often
            self._tick.set()
            return
        self._units.look_at(watch.roles)
        self._scanner.look_for(watch.roles)
        self._crontabs.look_for(watch.roles)
        self._told_units.forget()
        self._told_processes.forget()
        self._told_host = None
        self._told_schedules = None
        self._watching.set()
        self._tick.set()

    # --- units ------------------------------------------------------------------------------------------------------

    async def _follow_systemd(self) -> None:
        await self._watching.wait()
        failures = 0
        while True:
            try:
                self._table.connect()
                self._connected = True
                failures = 0
                await self._table.follow()
            except HostError as error:
                self._connected = False
                self._table.close()
                self._tell_units(
                    error.problem if isinstance(error, BusLost) and self._table.version else self._why_no_bus(error)
                )
            await asyncio.sleep(_BACK_OFF[min(failures, len(_BACK_OFF) - 1)])
            failures += 1

    def _why_no_bus(self, error: HostError) -> Problem:
        """No socket at all means no systemd; anything else is said as it is."""
        booted = os.path.isdir("/run/systemd/system")  # noqa: PTH112  sd_booted(3)
        if not booted and not self._user_manager:
            return NO_SYSTEMD
        if self._user_manager and error.problem.what.startswith("connect"):
            who = self._scanner.account(os.geteuid())
            return Problem(
                error.problem.what, error.problem.why, f"is a user manager running? loginctl enable-linger {who}"
            )
        return error.problem

    def _tell_states(self) -> None:
        """The first thing to be seen of the units; their properties take a second for some hundred."""
        if self._told_units.items or self._channel.full:
            return
        units = self._units.stated()
        update = protocol.UnitsUpdate(taken=time.time(), full=True, items=units, partial=True)
        self._channel.send(protocol.encode(update))

    def _states_changed(self, units: set[str]) -> None:
        """What is news is told at once, the rest with the next reading."""
        if not self._told_units.items or self._units.news(units):
            self._tell_units()

    def _tell_units(self, problem: Problem | None = None) -> None:
        if problem is not None:
            self._channel.send(protocol.encode(protocol.UnitsUpdate(problem=problem)))
            return
        started = time.monotonic()
        units = self._units.build(self._told_units.items)
        if not self._asked_first:
            self._ask_journal()
            return
        if self._channel.full:
            return
        if units.keys() - self._told_units.items.keys():
            self._requests.logs.units_appeared()
        delta = self._told_units.delta(units)
        self._channel.send(
            protocol.encode(
                protocol.UnitsUpdate(
                    taken=time.time(),
                    took=_since(started),
                    full=delta.full,
                    items=delta.items,
                    gone=delta.gone,
                    reloads=self._table.reloads,
                )
            )
        )
        self._ask_journal()

    def _ask_journal(self) -> None:
        """In a task of its own; when it has answered, the units are told (again)."""
        if self._asking is not None and not self._asking.done():
            return
        questions = self._units.questions()
        if not questions and self._asked_first:
            return

        async def ask() -> None:
            if self._asked_first:
                await self._units.ask(questions)
            else:
                await self._units.ask_first()
                self._asked_first = True
            if self._connected and not self._table.quiet:
                asyncio.get_running_loop().call_soon(self._tell_units)

        self._asking = asyncio.create_task(ask())

    async def _measure_urgent(self) -> None:
        while True:
            await asyncio.sleep(URGENT_SECONDS)
            if self._connected and self._units.anything_urgent():
                for _ in self._units.measure(only_urgent=True):
                    await asyncio.sleep(0)

    # --- what is not signalled --------------------------------------------------------------------------------------

    async def _refresh_often(self) -> None:
        await self._watching.wait()
        while True:
            self._tick.clear()
            started = time.monotonic()
            await self._refresh_units()
            await self._refresh_schedules()
            await self._refresh_processes()
            interval = max(self._watch.interval, SHORTEST_INTERVAL)
            spent = time.monotonic() - started
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(interval - spent, RESTING * spent)):
                    await self._tick.wait()

    async def _refresh_units(self) -> None:
        if not self._connected or self._table.quiet:
            return
        try:
            self._table.ping()
        except HostError as error:
            if not isinstance(error, BusLost):  # that is noticed and mended where signals are followed
                self._channel.send(protocol.encode(protocol.UnitsUpdate(problem=error.problem)))
            return
        for _ in self._units.measure():
            await asyncio.sleep(0)
        if self._connected and not self._table.quiet:
            self._tell_units()

    async def _refresh_processes(self) -> None:
        started = time.monotonic()
        watch = self._watch
        scanned = await self._scanned()
        took = _since(started)
        if self._channel.full or watch is not self._watch:
            return
        now = time.time()
        self._units.rest(scanned.resting)
        delta = self._told_processes.delta(scanned.workers, self._scanner, time.monotonic())
        problem = None
        if procfs.hidden():
            problem = Problem("processes of other accounts", "not permitted", _MORE_RIGHTS)
        self._channel.send(
            protocol.encode(
                protocol.ProcessesUpdate(
                    taken=now, took=took, full=delta.full, items=delta.items, gone=delta.gone, problem=problem
                )
            )
        )
        self._tell_host(scanned, took, problem)

    async def _scanned(self) -> Pass:
        steps = self._scanner.steps(self._crontabs.lines)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                scanned: Pass = end.value
                return scanned
            await asyncio.sleep(0)

    def _tell_host(self, scanned: Pass, took: float, problem: Problem | None) -> None:
        host = accounts.host_from(
            scanned, self._scanner.boot_id, self._scanner.account, self._hierarchy, self._told_host
        )
        items: tuple[Host, ...] = ()
        if self._told_host is None or not accounts.same_but_age(host, self._told_host):
            self._told_host = host
            items = (host,)
        update = protocol.HostUpdate(taken=host.now, took=took, full=bool(items), items=items, problem=problem)
        self._channel.send(protocol.encode(update))

    async def _refresh_schedules(self) -> None:
        started = time.monotonic()
        await self._crontabs.refresh()
        said = (self._crontabs.lines, self._crontabs.problem)
        changed = said != self._told_schedules
        if self._channel.full:
            return
        self._told_schedules = said
        self._channel.send(
            protocol.encode(
                protocol.SchedulesUpdate(
                    taken=time.time(),
                    took=_since(started),
                    full=changed,
                    items=said[0] if changed else (),
                    problem=said[1],
                )
            )
        )


def _since(started: float) -> float:
    return round(time.monotonic() - started, 4)


def main(user_manager: bool = False, read_only: bool = False) -> int:
    """Run until stdin closes; 0. A console that has gone away is no failure."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    heap.keep_small()

    async def work() -> None:
        await Agent(user_manager, read_only).run()

    try:
        asyncio.run(work())
    except KeyboardInterrupt:
        return 0
    except Exception as error:
        if os.environ.get("WORKTOP_DEBUG"):
            raise
        # the last line on stderr is what the console shows as the reason
        print(f"worktop agent: {type(error).__name__}: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0
