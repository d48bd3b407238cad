"""What is done to a unit: a job of systemd, awaited until JobRemoved says how it ended, then until the unit settles.

StartUnit and its like answer when the job is queued, which says nothing of how it ends. The connections are opened for
the first job and closed after the last. What is not signalled: a bus that was restarted loses the end of a job, so that
a job is also asked for by its path once a second.
"""

from __future__ import annotations

import asyncio
import re
import signal
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from console.errors import HostError
from console.fleet.model import Unit
from console.fleet.operations import JobResult, UnitJob, UnitProgress
from console.fleet.plan import UnitVerb
from console.fleet.workers import ending
from console.host.bus import SERVICE, UNIT, BusLost, Connection, NoAnswer, NotPermitted, Refused, text, unit_path
from console.host.children import output_of
from console.host.gentle import ask_to_end
from console.host.signals import number_of
from console.host.units import NOT_SET, keep, unit_from
from console.text import ago

TICK_SECONDS = 1.0  # progress is told, and the job asked for, this often
STILL_SECONDS = 0.3  # a state that has held for so long after the job's end is the settled one
SETTLE_SECONDS = 3.0  # and that is waited for at most this long
_LOOK_SECONDS = 0.1
_ENABLE_SECONDS = 30.0  # systemctl enable makes the manager reload, which takes seconds on a host with many units
_PUMP_SECONDS = 0.01
_NAME = re.compile(r"[A-Za-z0-9:_.\\@-]{1,240}\.(?:service|timer)\Z")
_METHODS: dict[UnitVerb, bytes] = {"start": b"StartUnit", "stop": b"StopUnit", "restart": b"RestartUnit"}
_RESULTS = frozenset({"done", "failed", "timeout", "canceled", "dependency", "skipped"})
_WORDS = {
    "timeout": "its job timed out",
    "canceled": "another job of the unit took its place",
    "dependency": "a unit it requires did not start",
    "skipped": "a condition of the unit is not met",
    "lost": "the end of its job was not signalled",
}
PERMIT = "worktop doctor --grants prints the polkit rule that allows it"


class Before(NamedTuple):
    """The unit before the job."""

    active: str
    invocation: str


class UnitJobs:
    """Jobs of units, any number at a time."""

    def __init__(self, user_manager: bool) -> None:
        self._user_manager = user_manager
        self._users = 0
        self._ask: Connection | None = None
        self._listen: Connection | None = None
        self._reader: int | None = None
        self._inbox: list[tuple[str, bytes, Any]] = []
        self._ends: dict[bytes, asyncio.Future[str]] = {}  # by path of the job

    async def run(
        self,
        name: str,
        verb: UnitVerb,
        timeout: float,
        with_signal: str,
        told: Callable[[UnitProgress], None],
        *,
        patience: float = 0.0,
        also: tuple[str, ...] = (),
    ) -> UnitJob:
        """Do it and wait. HostError: not permitted, no such unit, the bus is gone, or not over within `timeout` s.

        `patience`: of a stop, so many seconds it is asked to end before. `also`: enabled or disabled with it.
        """
        for each in (name, *also):
            if not _NAME.match(each):
                raise HostError(f"{verb} {each[:80]!r}", "that is no name of a service or a timer")
        if verb in ("enable", "disable"):
            return await self._enablement((name, *also), verb)
        started = time.monotonic()
        self._open()
        try:
            before = self._before(name)
            if verb == "stop" and patience > 0 and before.active in ("active", "deactivating"):
                try:
                    waits = await ask_to_end(self._asking(), name, patience, told)
                except NotPermitted as error:
                    raise _not_permitted(verb, name, error) from error
                if waits is not None:
                    return waits
            result = await self._done(name, verb, started, timeout, with_signal, told)
            try:
                unit = await self._settled(name, verb)
            except NoAnswer:
                await asyncio.sleep(STILL_SECONDS)
                unit = await self._settled(name, verb)
        finally:
            self._close_one()
        if unit.load == "not-found" and unit.active == "inactive":
            raise Refused(f"{verb} {name}", f"Unit {name} not found")
        took = round(time.monotonic() - started, 3)
        return _ended(unit, before, verb, result, took, with_signal)

    async def _done(
        self,
        name: str,
        verb: UnitVerb,
        started: float,
        timeout: float,
        with_signal: str,
        told: Callable[[UnitProgress], None],
    ) -> str:
        """Make the job and wait for its end; the result systemd gave it."""
        ask = self._asking()
        try:
            if verb == "reset-failed":
                ask.reset_failed(name)
                return "done"
            if verb == "kill":
                ask.kill_unit(name, b"all", number_of(with_signal))
                return "done"
            path = ask.make_job(_METHODS[verb], name)
        except NotPermitted as error:
            raise _not_permitted(verb, name, error) from error
        except NoAnswer as error:
            raise NoAnswer(f"{verb} {name}", error.problem.why, "it may still be done: look at the unit") from error
        except Refused as error:
            why = error.problem.why.rstrip(".")
            if verb == "stop" and why.endswith("not loaded"):  # systemd forgets a stopped instance that is not enabled
                return "done"
            raise Refused(f"{verb} {name}", why) from error
        end = self._ends.setdefault(path, asyncio.get_running_loop().create_future())
        try:
            while True:
                try:
                    async with asyncio.timeout(TICK_SECONDS):
                        return await asyncio.shield(end)
                except TimeoutError:
                    pass
                elapsed = time.monotonic() - started
                try:
                    progress = self._progress(name, verb, elapsed)
                except NoAnswer:
                    progress = UnitProgress(
                        unit=name, verb=verb, elapsed=round(elapsed, 1), text="systemd is busy and does not answer"
                    )
                if not self._asking().job_waits(path):
                    self._pump()
                    return end.result() if end.done() else "lost"
                if elapsed > timeout:
                    raise HostError(
                        f"{verb} {name}", f"not over after {timeout:.0f} s; {progress.text}", "systemd goes on with it"
                    )
                told(progress)
        finally:
            self._ends.pop(path, None)

    # --- the unit ---------------------------------------------------------------------------------------------------

    def _unit(self, name: str) -> Unit:
        return unit_from(name, keep(self._asking().properties(name)))

    def _before(self, name: str) -> Before:
        ask, path = self._asking(), unit_path(name)
        try:
            run = ask.property(path, UNIT, b"InvocationID", b"ay")
            return Before(text(ask.property(path, UNIT, b"ActiveState", b"s")), bytes(run or []).hex())
        except NoAnswer:
            raise
        except Refused:  # not loaded, or no name of a unit
            return Before("inactive", "")

    def _state(self, name: str) -> tuple[str, str, int]:
        ask, path = self._asking(), unit_path(name)
        active = text(ask.property(path, UNIT, b"ActiveState", b"s"))
        sub = text(ask.property(path, UNIT, b"SubState", b"s"))
        pid = ask.property(path, SERVICE, b"MainPID", b"u") if name.endswith(".service") else 0
        return active, sub, pid if isinstance(pid, int) else 0

    async def _settled(self, name: str, verb: UnitVerb) -> Unit:
        """The unit when its state no longer changes: a start that is done may fail right after (Type=simple)."""
        until = time.monotonic() + SETTLE_SECONDS
        last, since = self._state(name), time.monotonic()
        still = 0.0 if verb in ("stop", "reset-failed") else STILL_SECONDS
        while time.monotonic() < until:
            between = last[0] in ("deactivating", "reloading") or (
                last[0] == "activating" and last[1] != "auto-restart"
            )
            if not between and time.monotonic() - since >= still:
                break
            await asyncio.sleep(_LOOK_SECONDS)
            now = self._state(name)
            if now != last:
                last, since = now, time.monotonic()
        return self._unit(name)

    def _progress(self, name: str, verb: UnitVerb, elapsed: float) -> UnitProgress:
        """Where the unit is between two states, and when systemd gives up."""
        ask, path = self._asking(), unit_path(name)
        active, sub, _ = self._state(name)
        allowed = None
        if active in ("deactivating", "activating"):
            limit = b"TimeoutStopUSec" if active == "deactivating" or "stop" in sub else b"TimeoutStartUSec"
            value = ask.property(path, SERVICE, limit, b"t")
            since = ask.property(path, UNIT, b"StateChangeTimestampMonotonic", b"t")
            if isinstance(value, int) and isinstance(since, int) and 0 < value < NOT_SET:
                # systemd's monotonic stamps are of CLOCK_MONOTONIC, as time.monotonic()
                allowed = round(max(0.0, (since + value) / 1e6 - time.monotonic()), 1)
        words = f"{name} is {active} ({sub})"
        if allowed is not None:
            words += f", systemd gives up on this in {allowed:.0f} s"
        return UnitProgress(
            unit=name, verb=verb, active=active, sub=sub, elapsed=round(elapsed, 1), remaining=allowed, text=words
        )

    async def _enablement(self, names: tuple[str, ...], verb: UnitVerb) -> UnitJob:
        """By systemctl: it reads [Install], makes the links and lets the manager reload; the agent is not held up."""
        name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        started = time.monotonic()
        which = ["--user"] if self._user_manager else []
        command = ["systemctl", *which, "--quiet", "--no-ask-password", verb, "--", *names]
        said = await output_of(command, _ENABLE_SECONDS, 65536)
        if said.status != 0:
            why = said.err.decode("utf-8", "replace").strip().rpartition("\n")[2] or f"status {said.status}"
            denied = "uthentication required" in why or "ccess denied" in why
            do = "polkit cannot allow this for single units: run the agent through sudo" if denied else ""
            raise HostError(f"{verb} {name}", why.rstrip("."), do)
        took = round(time.monotonic() - started, 3)
        told = f"{name} {'is' if len(names) == 1 else 'are'} {verb}d"
        return UnitJob(unit=names[0], verb=verb, result="done", ok=True, took=took, text=told)

    # --- the bus ----------------------------------------------------------------------------------------------------

    def _open(self) -> None:
        self._users += 1
        if self._ask is not None and self._listen is not None:
            return
        try:
            self._ask = Connection(self._user_manager)
            self._listen = Connection(self._user_manager)
            self._inbox = []
            self._listen.subscribe_jobs(self._inbox)
            self._reader = self._listen.fileno()
            asyncio.get_running_loop().add_reader(self._reader, self._pump)
        except BaseException:
            self._close_one()
            raise

    def _close_one(self) -> None:
        self._users -= 1
        if self._users <= 0:
            self._users = 0
            self.close()

    def close(self) -> None:
        if self._reader is not None:
            asyncio.get_running_loop().remove_reader(self._reader)
            self._reader = None
        for connection in (self._ask, self._listen):
            if connection is not None:
                connection.close()
        self._ask = self._listen = None

    def _asking(self) -> Connection:
        if self._ask is None:
            raise BusLost("ask systemd", "the connection is closed")
        return self._ask

    def _pump(self) -> None:
        if self._listen is None:
            return
        try:
            more = self._listen.pump(_PUMP_SECONDS)
        except BusLost as lost:
            self._lose(lost)
            return
        messages, self._inbox[:] = self._inbox[:], []
        for member, _, body in messages:
            if member == "Disconnected":
                self._lose(BusLost("follow a job", "the bus closed the connection"))
                return
            if member == "JobRemoved" and isinstance(body, list | tuple) and len(body) >= 4:
                end = self._ends.get(bytes(body[1]))
                if end is not None and not end.done():
                    end.set_result(text(body[3]))
        if more:
            asyncio.get_running_loop().call_soon(self._pump)

    def _lose(self, lost: BusLost) -> None:
        """Those who wait are told; systemd goes on with their jobs."""
        for end in self._ends.values():
            if not end.done():
                end.set_exception(
                    BusLost(lost.problem.what, lost.problem.why, "systemd goes on with the job: look at the unit")
                )
                end.exception()  # nobody may be waiting any more
        self.close()


def _not_permitted(verb: UnitVerb, name: str, error: NotPermitted) -> NotPermitted:
    return NotPermitted(f"{verb} {name}", f"not permitted: {error.problem.why.rstrip('.').lower()}", PERMIT)


def _ended(unit: Unit, before: Before, verb: UnitVerb, result: str, took: float, with_signal: str) -> UnitJob:
    known: JobResult = msgspec.convert(result, JobResult) if result in (*_RESULTS, "lost") else "other"
    ok, words = _outcome(unit, before, verb, result, with_signal)
    return UnitJob(
        unit=unit.name,
        verb=verb,
        result=known,
        ok=ok,
        active=unit.active,
        sub=unit.sub,
        main_pid=unit.main_pid,
        invocation=unit.invocation,
        took=took,
        text=words,
    )


def _outcome(unit: Unit, before: Before, verb: UnitVerb, result: str, with_signal: str) -> tuple[bool, str]:
    """Whether the unit is as it was wanted, and the sentence."""
    name = unit.name
    fault = result if result not in ("done", "lost") else ""
    why = _WORDS.get(result, f"systemd's result is {result}")
    if verb in ("start", "restart"):
        if unit.active == "active" and not (verb == "restart" and before.invocation == unit.invocation):
            ok = not fault or unit.invocation != before.invocation
            runs = f"{name} runs as pid {unit.main_pid}" if unit.main_pid else f"{name} is active"
            return ok, runs + (f", but {why}" if fault else "")
        if result == "failed" and unit.invocation == before.invocation and unit.start_limit_burst:
            # systemd 252 leaves Result= as the last run had it
            limit = f"{unit.start_limit_burst} starts in {ago(unit.start_limit_interval)}"
            return False, f"{name} was not started: its start limit is reached ({limit}); reset-failed lifts it"
        if result in ("done", "failed") and (unit.active == "failed" or unit.sub == "auto-restart" or unit.exit_code):
            done = "was started, but ended again" if result == "done" else "did not start"
            again = "; systemd starts it again" if unit.sub == "auto-restart" else ""
            return False, f"{name} {done}: {ending(unit)}{again}"
        return False, f"{name} is {unit.active} ({unit.sub}), {why if fault else 'it did not start'}"
    if verb == "stop":
        down = unit.active in ("inactive", "failed")
        words = f"{name} is {'stopped' if down else f'{unit.active} ({unit.sub})'}"
        if down and unit.result == "timeout":
            words += "; it did not end in time and was killed"
        elif down and unit.active == "failed" and before.active != "failed":
            words += f"; {ending(unit)}"
        return down and not fault, words + (f"; {why}" if fault else "")
    if verb == "reset-failed":
        return unit.active != "failed", f"{name} is {unit.active} ({unit.sub})"
    sent = signal.Signals(number_of(with_signal)).name
    return True, f"{sent} was sent to every process of {name}; it is {unit.active} ({unit.sub})"
