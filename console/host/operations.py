"""Requests that act on the host, or wait for it to change: each is a task, so that none holds up another."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable

from console.ending import end
from console.errors import HostError
from console.fleet.model import Role
from console.host import files, own_crontab, protocol, signals
from console.host.channel import Channel
from console.host.clients import clients_of
from console.host.crontab_check import check_crontab
from console.host.holding import Holding
from console.host.jobs import UnitJobs
from console.host.processes import Scanner
from console.host.protocol import (
    ClientsOf,
    HoldRoles,
    Message,
    ReadFile,
    ReplaceFile,
    Request,
    Response,
    RightsFor,
    SignalTo,
    StopProgram,
    UnitJobOf,
    WaitGone,
)
from console.host.rights import rights_of
from console.host.supervisors import stop_program
from console.host.unit_check import reload_manager, verify

_WAITING = 256  # at a time: a role of two hundred workers may be stopped at once
_LONGEST_WAIT = 3600.0  # seconds
_METHODS = frozenset(
    {"unit_job", "hold", "stop_program", "wait_gone", "clients", "rights", "read_file", "replace_file", "daemon_reload"}
)
_READ_ONLY = ("the agent was started with --read-only", "start it without")


class Operations:
    """Jobs of units, signals, waits, files, and what they are decided with."""

    def __init__(
        self,
        channel: Channel,
        scanner: Scanner,
        roles: Callable[[], Iterable[Role]],
        user_manager: bool,
        read_only: bool,
    ) -> None:
        self._channel = channel
        self._scanner = scanner
        self._roles = roles
        self._user_manager = user_manager
        self._read_only = read_only
        self._jobs = UnitJobs(user_manager)
        self._holding = Holding()
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, request: Request) -> bool:
        """Whether the request is one of these: then it is answered sooner or later. HostError: it cannot be done."""
        number = request.id
        work: Coroutine[None, None, Message]
        if request.method == "signal":
            self._signal(number, protocol.decode_params(request, SignalTo))
            return True
        if request.method == "release":
            self._holding.drop()
            self._tell(Response(number, "ok"))
            return True
        if request.method not in _METHODS:
            return False
        if len(self._tasks) >= _WAITING:
            raise HostError(f"request {request.method}", f"{_WAITING} are being worked on already")
        if request.method == "unit_job":
            job = protocol.decode_params(request, UnitJobOf)
            if self._read_only:
                raise HostError(f"{job.verb} {job.name[:240]}", *_READ_ONLY)
            work = self._unit_job(number, job)
        elif request.method == "hold":
            work = self._hold(number, protocol.decode_params(request, HoldRoles))
        elif request.method == "stop_program":
            program = protocol.decode_params(request, StopProgram)
            if self._read_only:
                raise HostError(f"stop pid {program.ident.pid} through {program.kind}", *_READ_ONLY)
            work = self._stop_program(number, program)
        elif request.method == "wait_gone":
            work = self._wait_gone(number, protocol.decode_params(request, WaitGone))
        elif request.method == "clients":
            work = self._clients(number, protocol.decode_params(request, ClientsOf))
        elif request.method == "read_file":
            work = self._read_file(number, protocol.decode_params(request, ReadFile).path)
        elif request.method == "replace_file":
            edit = protocol.decode_params(request, ReplaceFile)
            if self._read_only:
                raise HostError(f"write {edit.path[:240]}", *_READ_ONLY)
            work = self._replace_file(number, edit)
        elif request.method == "daemon_reload":
            if self._read_only:
                raise HostError("reload systemd", *_READ_ONLY)
            work = self._reload(number)
        else:
            work = self._rights(number, protocol.decode_params(request, RightsFor))
        task = asyncio.create_task(self._answer(number, request.method, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def close(self) -> None:
        """Stop waiting. What systemd has begun it goes on with."""
        await asyncio.gather(*(end(task) for task in list(self._tasks)))
        self._jobs.close()
        self._holding.drop()

    async def _answer(self, number: int, method: str, work: Coroutine[None, None, Message]) -> None:
        try:
            answer: Message = await work
        except HostError as error:
            answer = protocol.Failure(number, error.problem)
        except Exception as error:  # noqa: BLE001  an operation that fails must not end the agent
            answer = protocol.Failure(
                number, HostError(f"request {method}", f"{type(error).__name__}: {error}").problem
            )
        self._tell(answer)

    def _signal(self, number: int, asked: SignalTo) -> None:
        if self._read_only:
            raise HostError(f"signal {asked.signal[:20]} to pid {asked.ident.pid}", *_READ_ONLY)
        signals.send(asked.ident, asked.signal)
        self._tell(Response(number, "ok"))

    async def _unit_job(self, number: int, asked: UnitJobOf) -> Message:
        timeout = min(max(asked.timeout, 0.0), _LONGEST_WAIT)
        job = await self._jobs.run(
            asked.name,
            asked.verb,
            timeout,
            asked.signal,
            lambda progress: self._tell(protocol.UnitJobTold(number, progress)),
            patience=min(max(asked.patience, 0.0), timeout),
            also=asked.also,
        )
        return protocol.UnitJobAnswer(number, job)

    async def _hold(self, number: int, asked: HoldRoles) -> Message:
        await self._holding.take(asked.roles, asked.who)
        return Response(number, "ok")

    async def _stop_program(self, number: int, asked: StopProgram) -> Message:
        return Response(number, await stop_program(asked.kind, asked.ident))

    async def _wait_gone(self, number: int, asked: WaitGone) -> Message:
        gone = await signals.wait_gone(asked.ident, min(max(asked.timeout, 0.0), _LONGEST_WAIT))
        return Response(number, "gone" if gone else "alive")

    async def _clients(self, number: int, asked: ClientsOf) -> Message:
        return protocol.ClientsAnswer(number, await clients_of(asked.backends, asked.server_port, self._scanner))

    async def _rights(self, number: int, asked: RightsFor) -> Message:
        user = self._scanner.account(os.geteuid())
        rights = await rights_of(self._roles(), user, self._user_manager, self._read_only, asked.group)
        return protocol.RightsAnswer(number, rights)

    async def _read_file(self, number: int, path: str) -> Message:
        read = await own_crontab.read_own(path) if own_crontab.is_own(path) else files.read_file(path)
        return protocol.FileReadAnswer(number, read)

    async def _replace_file(self, number: int, edit: ReplaceFile) -> Message:
        if own_crontab.is_own(edit.path):
            written = await own_crontab.replace_own(edit.path, edit.expected, edit.content)
            return protocol.FileWrittenAnswer(number, written)
        place = files.place_of(edit.path)
        if edit.check == "unit" and edit.content is not None:
            await verify(place, edit.content, self._user_manager)
        if edit.check == "crontab" and edit.content is not None:
            await check_crontab(edit.path, edit.content, files.read_file(edit.path).content)
        written = files.replace_file(edit.path, edit.expected, edit.content, edit.mode, edit.backup)
        return protocol.FileWrittenAnswer(number, written)

    async def _reload(self, number: int) -> Message:
        await reload_manager(self._user_manager)
        return Response(number, "ok")

    def _tell(self, message: Message) -> None:
        self._channel.send(protocol.encode(message))
