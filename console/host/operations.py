"""Requests that act on the host, or wait for it to change: each is a task, so that none holds up another."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterable

from console.errors import HostError
from console.fleet.model import Role
from console.host import protocol, signals
from console.host.channel import Channel
from console.host.clients import clients_of
from console.host.jobs import UnitJobs
from console.host.processes import Scanner
from console.host.protocol import ClientsOf, Message, Request, Response, RightsFor, SignalTo, UnitJobOf, WaitGone
from console.host.rights import rights_of

_WAITING = 256  # at a time: a role of two hundred workers may be stopped at once
_LONGEST_WAIT = 3600.0  # seconds
_READ_ONLY = ("the agent was started with --read-only", "start it without")


class Operations:
    """Jobs of units, signals, waits, and what they are decided with."""

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
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, request: Request) -> bool:
        """Whether the request is one of these: then it is answered sooner or later. HostError: it cannot be done."""
        number = request.id
        work: Coroutine[None, None, Message]
        if request.method == "signal":
            self._signal(number, protocol.decode_params(request, SignalTo))
            return True
        if request.method not in ("unit_job", "wait_gone", "clients", "rights"):
            return False
        if len(self._tasks) >= _WAITING:
            raise HostError(f"request {request.method}", f"{_WAITING} are being worked on already")
        if request.method == "unit_job":
            job = protocol.decode_params(request, UnitJobOf)
            if self._read_only:
                raise HostError(f"{job.verb} {job.name[:240]}", *_READ_ONLY)
            work = self._unit_job(number, job)
        elif request.method == "wait_gone":
            work = self._wait_gone(number, protocol.decode_params(request, WaitGone))
        elif request.method == "clients":
            work = self._clients(number, protocol.decode_params(request, ClientsOf))
        else:
            work = self._rights(number, protocol.decode_params(request, RightsFor))
        task = asyncio.create_task(self._answer(number, request.method, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def close(self) -> None:
        """Stop waiting. What systemd has begun it goes on with."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._jobs.close()

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
        )
        return protocol.UnitJobAnswer(number, job)

    async def _wait_gone(self, number: int, asked: WaitGone) -> Message:
        gone = await signals.wait_gone(asked.ident, min(max(asked.timeout, 0.0), _LONGEST_WAIT))
        return Response(number, "gone" if gone else "alive")

    async def _clients(self, number: int, asked: ClientsOf) -> Message:
        return protocol.ClientsAnswer(number, await clients_of(asked.backends, asked.server_port, self._scanner))

    async def _rights(self, number: int, asked: RightsFor) -> Message:
        user = self._scanner.account(os.geteuid())
        rights = await rights_of(self._roles(), user, self._user_manager, self._read_only, asked.group)
        return protocol.RightsAnswer(number, rights)

    def _tell(self, message: Message) -> None:
        self._channel.send(protocol.encode(message))
