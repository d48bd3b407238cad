"""What the console asks of a host's agent, and what it has the agent do."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from console.errors import HostError, Problem
from console.fleet.diagnosis.model import Looked
from console.fleet.model import Backend, DatabaseClient, HostDetail, Ident, LogLine, Role, UnitDetail
from console.fleet.operations import FileCheck, FileRead, FileWritten, HostRights, UnitJob, UnitProgress
from console.fleet.plan import UnitVerb
from console.host.conversation import ANSWER_SECONDS, Conversation, answered
from console.host.heard import SchedulesHeard
from console.host.polkit import GROUP
from console.host.protocol import (
    ClientsAnswer,
    ClientsOf,
    ExamineAnswer,
    ExamineOf,
    FileReadAnswer,
    FileWrittenAnswer,
    HoldRoles,
    HostDetailAnswer,
    LogAnswer,
    LookUp,
    ReadFile,
    ReadLog,
    ReplaceFile,
    Response,
    RightsAnswer,
    RightsFor,
    SchedulesAnswer,
    SchedulesOf,
    SignalTo,
    StopProgram,
    SupervisorKind,
    TranslateAnswer,
    TranslateOf,
    UnitDetailAnswer,
    UnitDetailOf,
    UnitJobAnswer,
    UnitJobOf,
    WaitGone,
)
from console.schedules.inventory import Inventory, Translated


class HostClient(Conversation):
    """One host's agent. Use `run` as a task of the console, or `ready` then `close` in a command that prints once."""

    @functools.cached_property
    def _schedules(self) -> SchedulesHeard:
        """What has been told of them so far: only what is different is told again."""
        return SchedulesHeard()

    async def look_up(self, pids: Sequence[int], timeout: float = 5.0) -> None:
        """Ask who has these pids now; the answer, or why there is none, is in `facts.holders`. Raises nothing."""
        if self.facts.agent.problem is not None:
            return  # the holders say so already
        try:
            if self._writer is None:
                raise HostError("host agent", "not started yet")
            await self._answer(self._send("look_up", LookUp(pids=tuple(pids))), timeout)
        except HostError as error:
            self._keeper.not_looked_up(error.problem)

    async def unit_detail(self, name: str, timeout: float = 5.0) -> UnitDetail:
        """Properties, files, processes and last journal lines of a unit. HostError: no unit, no agent, no answer."""
        answer = await self._told(UnitDetailAnswer, f"detail of {name}", "unit_detail", UnitDetailOf(name), timeout)
        return answer.detail

    async def examine(
        self,
        role: Role,
        name: str = "",
        ident: Ident | None = None,
        *,
        health: bool = False,
        starters: bool = True,
        timeout: float = 25.0,
    ) -> Looked:
        """What a diagnosis wants to know of the worker in this unit, or of this main process; with `health` the
        role's check is asked too, without `starters` nobody else who starts the role is searched for. HostError: no
        agent, no answer."""
        answer = await self._told(
            ExamineAnswer,
            f"examine {name or 'a worker'}",
            "examine",
            ExamineOf(role, name, ident, health, starters),
            timeout,
        )
        return answer.looked

    # --- what changes something -------------------------------------------------------------------------------------

    async def unit_job(
        self,
        name: str,
        verb: UnitVerb,
        timeout: float = 120.0,
        *,
        signal: str = "KILL",
        patience: float = 0.0,
        also: tuple[str, ...] = (),
        on_progress: Callable[[UnitProgress], None] | None = None,
    ) -> UnitJob:
        """Do it to the service, and wait until systemd's job has ended and the unit has settled; `signal` is for the
        verb kill, which signals every process of the unit. `on_progress` is called once a second until then.

        `patience`: of a stop: the service is asked to end and stopped when it has ended; when it has not within so
        many seconds it is left running, and the result is "timeout". `also`: services that are enabled or disabled
        with it, for which systemd reads its files once.

        HostError: not permitted, no such unit, no agent, or not over within `timeout` seconds (systemd goes on with
        it). A job that failed is no error: `UnitJob.ok` is False and its text says why.
        """
        number = self._sent("unit_job", UnitJobOf(name, verb, timeout, signal, patience, also))
        if on_progress is not None:
            self._progress[number] = on_progress
        try:
            answer = await self._answer(number, timeout + ANSWER_SECONDS)
        finally:
            self._progress.pop(number, None)
        return answered(UnitJobAnswer, answer, f"{verb} {name}").job

    async def hold(self, roles: tuple[str, ...], who: str, timeout: float = 5.0) -> None:
        """Keep other consoles from acting on these roles until `release`, or the end of the agent. HostError names who
        keeps this one from it."""
        await self._ask("hold", HoldRoles(roles, who), timeout)

    async def release(self, timeout: float = 5.0) -> None:
        """Other consoles may act again. HostError: no agent, no answer; then nothing is held either."""
        await self._ask("release", None, timeout)

    async def signal(self, ident: Ident, signal: str, timeout: float = 5.0) -> None:
        """Send the signal ("TERM") to exactly this process. HostError: it is gone, another has its pid, not permitted,
        or it is pid 1, the agent or one of its ancestors."""
        await self._ask("signal", SignalTo(ident, signal), timeout)

    async def read_file(self, path: str, timeout: float = 5.0) -> FileRead:
        """A unit file, a drop-in or a crontab as it is now; `problem` says why it could not be read. HostError: it is
        in no folder that worktop edits, no agent, no answer."""
        answer = await self._told(FileReadAnswer, f"read {path}", "read_file", ReadFile(path), timeout)
        return answer.file

    async def replace_file(
        self,
        path: str,
        *,
        expected: str,
        content: bytes | None,
        mode: int | None = None,
        check: FileCheck = "",
        backup: bool = True,
        timeout: float = 45.0,
    ) -> FileWritten:
        """Put `content` in the file's place (None: remove it), whole or not at all, if it still has the sha256
        `expected` ("": there is none). `check`: what must find nothing wrong with it first. A copy of what was there
        is kept in the state directory of the agent's account.

        HostError: changed by somebody else since, not valid, not permitted, no agent; then nothing was changed. An
        agent that does not answer in time may have done it: read the file again.
        """
        asked = ReplaceFile(path, expected, content, mode, check, backup)
        answer = await self._told(FileWrittenAnswer, f"write {path}", "replace_file", asked, timeout)
        return answer.written

    async def daemon_reload(self, timeout: float = 95.0) -> None:
        """Make systemd read its files again. It starts every unit's counter of the start limit anew (systemd 252).
        HostError: not permitted, no agent, not over in time."""
        await self._ask("daemon_reload", None, timeout)

    async def stop_program(self, kind: SupervisorKind, ident: Ident, timeout: float = 130.0) -> str:
        """Have the supervisor stop the program whose process this is; a sentence. HostError: it does not list it, the
        process is gone, its command failed."""
        answer = await self._ask("stop_program", StopProgram(kind, ident), timeout)
        return answer.result if isinstance(answer, Response) else ""

    async def wait_gone(self, ident: Ident, timeout: float) -> bool:
        """Whether exactly this process has ended within `timeout` seconds. HostError: no agent, hidden from it."""
        answer = await self._ask("wait_gone", WaitGone(ident, timeout), timeout + ANSWER_SECONDS)
        return isinstance(answer, Response) and answer.result == "gone"

    async def clients(
        self, backends: Sequence[Backend], server_port: int = 0, timeout: float = 10.0
    ) -> tuple[DatabaseClient, ...]:
        """Which processes of this host are at the other end of these connections; what it says is also kept in
        `facts.clients`. HostError: no agent, no answer."""
        try:
            asked = ClientsOf(tuple(backends), server_port)
            answer = await self._told(ClientsAnswer, "clients of the database", "clients", asked, timeout)
        except HostError as error:
            self._keeper.clients(None, error.problem)
            raise
        self._keeper.clients(answer.clients)
        return answer.clients

    async def rights(self, group: str = GROUP, timeout: float = 10.0) -> HostRights:
        """What the agent's account may do to the units of the roles, and the polkit rule that would allow the rest to
        the members of `group`. Nothing is done to find out. HostError: no agent, no bus, no answer."""
        answer = await self._told(RightsAnswer, "rights on the host", "rights", RightsFor(group), timeout)
        return answer.rights

    async def host_detail(self, timeout: float = 5.0) -> HostDetail:
        """The process trees of the host under the owners of their roots. HostError: no agent, no answer."""
        answer = await self._told(HostDetailAnswer, "detail of the host", "host_detail", None, timeout)
        return answer.detail

    async def schedules(self, anew: bool = False, timeout: float = 25.0) -> Inventory:
        """Everything that starts something on the host; read again when a file has changed, or with `anew`. HostError:
        no agent, no answer."""
        answer = await self._told(
            SchedulesAnswer, "schedules of the host", "schedules", SchedulesOf(self._schedules.known, anew), timeout
        )
        return self._schedules.heard(answer)

    async def translate(
        self, names: Sequence[str], prove: bool = True, timeout: float = 25.0
    ) -> tuple[Translated, ...]:
        """The units that these entries of the schedules would become, and with `prove` what was proved of them.
        HostError: there is no such entry, no agent, no answer."""
        answer = await self._told(
            TranslateAnswer, "translate schedules", "translate", TranslateOf(tuple(names), prove), timeout
        )
        return answer.translated

    async def read_log(
        self,
        units: tuple[str, ...],
        *,
        lines: int = 200,
        since: float | None = None,
        until: float | None = None,
        mentions: str = "",
        timeout: float = 12.0,
    ) -> tuple[tuple[LogLine, ...], Problem | None]:
        """The last `lines` entries of these units in that time (epoch seconds), oldest first, and why there are none,
        or not all. HostError: no agent, no answer, no such unit."""
        answer = await self._told(
            LogAnswer, "read the journal", "read_log", ReadLog(units, lines, since, until, mentions), timeout
        )
        return answer.lines, answer.problem
