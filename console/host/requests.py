"""Requests that take longer than a turn of the event loop: each is a task, and answers when it is done."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterable
from typing import TYPE_CHECKING

from console.ending import end
from console.errors import HostError
from console.fleet.model import Role
from console.host import protocol
from console.host.cgroups import Hierarchy
from console.host.channel import Channel
from console.host.details import unit_detail
from console.host.log_query import read_log
from console.host.logs import LogFollows
from console.host.processes import Scanner
from console.host.protocol import (
    ExamineOf,
    FollowLog,
    Message,
    ReadLog,
    Request,
    Response,
    SchedulesOf,
    StopLog,
    TranslateOf,
    UnitDetailOf,
)
from console.host.trees import trees_of_host

if TYPE_CHECKING:
    from console.host.schedules import SchedulesKept

_AT_ONCE = 2  # that are worked on
_WAITING = 32  # that may wait
_SECONDS = 10.0
_LONG_SECONDS = 20.0  # the journal, a health check, the files of a few hundred units, systemd-analyze


class Requests:
    """Details and follows of one console."""

    def __init__(
        self,
        channel: Channel,
        scanner: Scanner,
        hierarchy: Hierarchy,
        loaded: Callable[[], Iterable[str]],
        user_manager: bool,
        read_only: bool = False,
        roles: Callable[[], Iterable[Role]] = tuple,
    ) -> None:
        self._channel = channel
        self._scanner = scanner
        self._hierarchy = hierarchy
        self._user_manager = user_manager
        self._read_only = read_only
        self._roles = roles
        self._loaded = loaded
        self._gate = asyncio.Semaphore(_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self.logs = LogFollows(self._tell, lambda: channel.busy, loaded, user_manager)

    def take(self, request: Request) -> bool:
        """Whether the request is one of these: then it is answered sooner or later. HostError: it cannot be done."""
        number = request.id
        work: Coroutine[None, None, Message]
        if request.method == "follow_log":
            self.logs.start(number, protocol.decode_params(request, FollowLog))
            self._tell(Response(number, "ok"))
            return True
        if request.method == "stop_log":
            work = self._stop_log(number, protocol.decode_params(request, StopLog).follow)
        elif len(self._tasks) >= _WAITING:
            raise HostError(f"request {request.method[:40]}", f"{_WAITING} requests wait already")
        elif request.method == "unit_detail":
            work = self._unit_detail(number, protocol.decode_params(request, UnitDetailOf).name)
        elif request.method == "read_log":
            work = self._read_log(number, protocol.decode_params(request, ReadLog))
        elif request.method == "host_detail":
            work = self._host_detail(number)
        elif request.method == "examine":
            work = self._examine(number, protocol.decode_params(request, ExamineOf))
        elif request.method == "schedules":
            work = self._schedules(number, protocol.decode_params(request, SchedulesOf))
        elif request.method == "translate":
            work = self._translate(number, protocol.decode_params(request, TranslateOf))
        else:
            return False
        seconds = _LONG_SECONDS if request.method in ("examine", "schedules", "translate") else _SECONDS
        task = asyncio.create_task(self._answer(number, work, seconds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def close(self) -> None:
        await asyncio.gather(*(end(task) for task in list(self._tasks)))
        await self.logs.close()

    async def _answer(self, number: int, work: Coroutine[None, None, Message], seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                answer: Message = await work
        except TimeoutError:
            answer = protocol.Failure(number, HostError("host agent", f"not done within {seconds:g} s").problem)
        except HostError as error:
            answer = protocol.Failure(number, error.problem)
        except Exception as error:  # noqa: BLE001  a detail that fails must not end the agent
            problem = HostError("host agent", f"{type(error).__name__}: {error}").problem
            answer = protocol.Failure(number, problem)
        self._tell(answer)

    async def _unit_detail(self, number: int, name: str) -> Message:
        async with self._gate:
            detail = await unit_detail(name, self._scanner, self._hierarchy, self._user_manager)
        return protocol.UnitDetailAnswer(number, detail)

    async def _read_log(self, number: int, wanted: ReadLog) -> Message:
        async with self._gate:
            lines, problem = await read_log(wanted, self._loaded, self._user_manager)
        return protocol.LogAnswer(number, lines, problem)

    async def _host_detail(self, number: int) -> Message:
        async with self._gate:
            detail = await trees_of_host(self._scanner)
        return protocol.HostDetailAnswer(number, detail)

    async def _examine(self, number: int, wanted: ExamineOf) -> Message:
        from console.host.examine import examine  # not needed at a start

        async with self._gate:
            looked = await examine(
                wanted.name,
                wanted.ident,
                wanted.role,
                self._scanner,
                self._hierarchy,
                self._user_manager,
                self._read_only,
                wanted.health,
                wanted.starters,
            )
        return protocol.ExamineAnswer(number, looked)

    async def _schedules(self, number: int, wanted: SchedulesOf) -> Message:
        async with self._gate:
            return await self._kept_schedules.answer(number, wanted)

    async def _translate(self, number: int, wanted: TranslateOf) -> Message:
        async with self._gate:
            return protocol.TranslateAnswer(number, await self._kept_schedules.translate(wanted.names, wanted.prove))

    @functools.cached_property
    def _kept_schedules(self) -> SchedulesKept:
        from console.host.schedules import SchedulesKept  # not needed at a start

        return SchedulesKept(self._scanner, self._roles)

    async def _stop_log(self, number: int, follow: int) -> Message:
        await self.logs.stop(follow)
        return Response(number, "ok")

    def _tell(self, message: Message) -> None:
        self._channel.send(protocol.encode(message))
