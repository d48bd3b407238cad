"""The conversation with one host agent: it is started, listened to, asked, and started again when it dies.

`Conversation.facts` is always the latest, a frozen value. When the agent dies every reading keeps its value, gets the
problem, and grows old; a new agent is started with a growing pause. No child outlives `run` and `close`.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self, TypeVar

from console.ending import end
from console.errors import AgentLost, HostError
from console.fleet.model import HostFacts, LogLine, Role
from console.fleet.operations import UnitProgress
from console.host import facts as keeping
from console.host import protocol, spawn
from console.host.follow import LogFollow
from console.host.protocol import (
    Answer,
    ClientsAnswer,
    ExamineAnswer,
    Failure,
    FileReadAnswer,
    FileWrittenAnswer,
    Greeting,
    HostDetailAnswer,
    Lines,
    LogAnswer,
    LogUpdate,
    Params,
    Response,
    RightsAnswer,
    SchedulesAnswer,
    StopLog,
    TranslateAnswer,
    UnitDetailAnswer,
    UnitJobAnswer,
    UnitJobTold,
    Watch,
)

A = TypeVar("A", bound=Answer)

HELLO_SECONDS = 20.0  # ssh may have to wake a host; an agent that said nothing until then is given up
SILENCE_SECONDS = 20.0  # an agent says something every interval; silent for this long it hangs
_STOP_SECONDS = 2.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
ANSWER_SECONDS = 15.0  # what an agent may take beyond what it was asked to wait
_ANSWERS = (
    *(Response, Failure, UnitDetailAnswer, HostDetailAnswer, UnitJobAnswer, ClientsAnswer, RightsAnswer, ExamineAnswer),
    *(FileReadAnswer, FileWrittenAnswer, LogAnswer, SchedulesAnswer, TranslateAnswer),
)


class Conversation:
    """Use `run` as a task of the console, or `ready` then `close` in a command that prints once."""

    def __init__(
        self,
        roles: Sequence[Role],
        *,
        command: tuple[str, ...] = (),
        user_manager: bool = False,
        process: subprocess.Popen[bytes] | None = None,
        on_change: Callable[[bool], None] | None = None,
        interval: float = 2.0,
    ) -> None:
        """`process`: an agent that was started with `spawn.spawn` already. `on_change` is called after every change
        of `facts`, at most once for what arrived together, with True when a person must see it at once. `interval`:
        seconds between readings that are not pushed."""
        self._watch = Watch(roles=tuple(roles), interval=interval)
        self._command = command
        self._user_manager = user_manager
        self._child = process
        self.on_change = on_change
        self._keeper = keeping.Keeper()
        self._writer: asyncio.WriteTransport | None = None
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[Answer]] = {}
        self._progress: dict[int, Callable[[UnitProgress], None]] = {}  # by the id of the unit_job request
        self._follows: list[LogFollow] = []
        self._watching = 0  # the id of the last watch request
        self._greeted = False  # an agent of this protocol listens
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def facts(self) -> HostFacts:
        """Everything the agent has said so far."""
        return self._keeper.facts

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The child that is the agent, or leads to it (sudo, ssh)."""
        return self._child

    @property
    def greetings(self) -> int:
        """How many agents have greeted so far."""
        return self._keeper.greetings

    async def run(self) -> None:
        """Start the agent, listen, start it again when it dies; until cancelled."""
        pause = _FIRST_PAUSE
        try:
            while True:
                greeted = self._keeper.greetings
                try:
                    await self._talk()
                except HostError as error:
                    problem = error.problem
                if self._keeper.greetings > greeted and self._keeper.lived_for() > _LONGEST_PAUSE:
                    pause = _FIRST_PAUSE
                await self._end_child()
                self._keeper.failed(problem)
                for follow in self._follows:
                    follow.failed(problem)
                self._changed()
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
        finally:
            await self._end_child()

    async def ready(self, timeout: float) -> HostFacts:
        """The facts when every source has said something (or failed), or the agent has failed, or after `timeout` s."""
        if self._task is None:
            self._task = asyncio.create_task(self.run())
            self._task.add_done_callback(lambda _: self._news.set())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while not self._keeper.complete and self.facts.agent.problem is None and not self._task.done():
                    self._news.clear()
                    await self._news.wait()
        if self._task.done():
            self._task.result()  # a callback failed
        return self.facts

    async def close(self) -> None:
        """End what `ready` started, and the agent."""
        if self._task is not None:
            task, self._task = self._task, None
            await end(task)
            if not task.cancelled():
                task.result()  # a callback failed
        await self._end_child()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def watch(self, roles: Sequence[Role]) -> None:
        """Look at other roles from now on (a configuration that was read again)."""
        self._watch = Watch(roles=tuple(roles), interval=self._watch.interval)
        self._watching = self._send("watch", self._watch)

    def pace(self, interval: float) -> None:
        """Read what is not signalled every so many seconds from now on; changes of state come at once as before."""
        if interval == self._watch.interval:
            return
        self._watch = Watch(roles=self._watch.roles, interval=interval)
        if self._watching:
            self._watching = self._send("watch", self._watch)

    def refresh(self) -> None:
        """Ask for everything now; what is different is pushed."""
        self._send("refresh")

    async def ping(self, timeout: float = 5.0) -> float:
        """Seconds until the agent answered. HostError when it does not."""
        started = time.monotonic()
        await self._answer(self._send("ping"), timeout)
        return time.monotonic() - started

    async def follow_log(
        self,
        units: tuple[str, ...],
        on_lines: Callable[[tuple[LogLine, ...]], None],
        *,
        lines: int = 200,
        since: float | None = None,
        mentions: str = "",
        timeout: float = 5.0,
    ) -> LogFollow:
        """Follow the journal of these units (names, or globs such as "worker@*.service"): the last `lines` entries
        (`since` an epoch second), then what is written; with `mentions` only lines in which this word stands.
        `on_lines` is called on the event loop with the next ones, oldest first.

        It goes on over the death of an agent, after the last line that came; while there is none, `LogFollow.problem`
        says so. HostError: the agent refused, or did not answer.
        """
        follow = LogFollow(units, on_lines, lines, self._stop_follow, since, mentions)
        self._follows.append(follow)
        if not self._greeted:
            follow.problem = self.facts.agent.problem or HostError("host agent", "not started yet").problem
            return follow
        try:
            follow.number = self._send("follow_log", follow.request())
            await self._answer(follow.number, timeout)
        except BaseException:
            await follow.stop()
            raise
        return follow

    async def _stop_follow(self, follow: LogFollow) -> None:
        if follow in self._follows:
            self._follows.remove(follow)
        if follow.number is not None and self._greeted:
            with contextlib.suppress(HostError):
                await self._answer(self._send("stop_log", StopLog(follow.number)), _STOP_SECONDS)

    async def _ask(self, method: str, params: Params | None, timeout: float) -> Answer:
        return await self._answer(self._sent(method, params), timeout)

    async def _told(self, kind: type[A], what: str, method: str, params: Params | None, timeout: float) -> A:
        """Ask for an answer of this kind. HostError: no agent, refused, not in time; `what` names it."""
        return answered(kind, await self._ask(method, params, timeout), what)

    def _sent(self, method: str, params: Params | None) -> int:
        """Send a request that needs an agent, and say under which number. HostError when there is none."""
        if not self._greeted:
            problem = self.facts.agent.problem
            raise (
                AgentLost(problem.what, problem.why, problem.do)
                if problem
                else AgentLost("host agent", "not started yet")
            )
        return self._send(method, params)

    async def _answer(self, number: int, timeout: float) -> Answer:
        """Wait for the answer to a request. HostError: it was refused, or did not come in time."""
        answer = self._answers.setdefault(number, asyncio.get_running_loop().create_future())
        try:
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise AgentLost("host agent", f"no answer within {timeout:g} s") from None
        finally:
            self._answers.pop(number, None)

    # --- one agent --------------------------------------------------------------------------------------------------

    async def _talk(self) -> None:
        """Start an agent and listen to it until it ends, which is a HostError like every other end."""
        loop = asyncio.get_running_loop()
        started = time.monotonic()
        if self._child is None:
            try:
                self._child = spawn.spawn(self._command, self._user_manager)
            except OSError as error:
                program = self._command[0] if self._command else "python"
                reason = error.strerror or str(error)
                raise HostError(
                    f"start the host agent ({program})", reason, "see agent in [host] of worktop.toml"
                ) from error
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        reader = asyncio.StreamReader(limit=2**20)
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), child.stdout)
        try:
            self._writer, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, child.stdin)
            self._keeper.begin()
            lines = Lines(protocol.LONGEST_LINE)
            greeted = False
            while True:
                patience = SILENCE_SECONDS if greeted else HELLO_SECONDS
                try:
                    async with asyncio.timeout(patience):
                        data = await reader.read(2**18)
                except TimeoutError:
                    raise HostError("host agent", f"said nothing for {patience:.0f} s", "starting it again") from None
                if not data:
                    raise self._why_it_ended(child)
                told = at_once = False
                for line in lines.feed(data):
                    message = protocol.decode(line)
                    if isinstance(message, Greeting):
                        greeted = True
                        self._keeper.greeted(message.hello, time.monotonic() - started)
                        self._greeted = told = at_once = True
                        self._watching = self._send("watch", self._watch)
                        for follow in self._follows:
                            follow.number = self._send("follow_log", follow.request())
                    elif isinstance(message, UnitJobTold):
                        if message.id in self._progress:
                            self._progress[message.id](message.progress)
                    elif isinstance(message, _ANSWERS):
                        self._answered(message)
                        if isinstance(message, Failure):
                            told = at_once = True
                    elif isinstance(message, LogUpdate):
                        for follow in [each for each in self._follows if each.number == message.follow]:
                            follow.update(message)
                    elif greeted:
                        at_once |= self._keeper.update(message)
                        told = True
                if told:
                    self._changed(at_once)
        finally:
            self._greeted = False
            transport.close()

    def _why_it_ended(self, child: subprocess.Popen[bytes]) -> HostError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(0.2)  # its last output has been read; the status follows at once
        words = spawn.last_words(child)
        code = child.returncode
        if code is None:
            why = "closed its output"
        elif code < 0:
            name = signal.Signals(-code).name if -code in signal.Signals._value2member_map_ else str(-code)
            why = f"was killed by {name}"
        else:
            why = f"ended with status {code}"
        return HostError("host agent", f"{why}: {words}" if words else why, "starting it again")

    def _send(self, method: str, params: Params | None = None) -> int:
        number = next(self._numbers)
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(protocol.encode_request(number, method, params))
        return number

    def _answered(self, message: Answer | Failure) -> None:
        future = self._answers.pop(message.id, None)
        if isinstance(message, Failure):
            error = HostError(message.problem.what, message.problem.why, message.problem.do)
            follow = next((each for each in self._follows if each.number == message.id), None)
            if follow is not None:
                follow.failed(error.problem)
            if future is None:
                if follow is None and message.id in (0, self._watching):
                    self._keeper.refused(error.problem)
            elif not future.done():
                future.set_exception(error)
        elif future is not None and not future.done():
            future.set_result(message)

    def _changed(self, at_once: bool = True) -> None:
        self._news.set()
        if self.on_change is not None:
            self.on_change(at_once)

    async def _end_child(self) -> None:
        """Close its stdin, which ends an agent; then SIGTERM, then SIGKILL, to its whole session."""
        child, self._child = self._child, None
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(AgentLost("host agent", "ended before it answered"))
        if child is None:
            return
        try:
            if child.stdin is not None:
                with contextlib.suppress(OSError):
                    child.stdin.close()
            for number in (None, signal.SIGTERM, signal.SIGKILL):
                if number is not None:
                    _signal_session(child.pid, number)
                for _ in range(75):
                    if child.poll() is not None:
                        return
                    await asyncio.sleep(0.02)
        finally:
            if child.poll() is None:  # cancelled while waiting
                _signal_session(child.pid, signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(1.0)
            for stream in (child.stdout, child.stderr):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def answered(kind: type[A], answer: Answer, what: str) -> A:
    """The answer, if it is of this kind. HostError."""
    if not isinstance(answer, kind):
        raise HostError(what, "the agent gave another answer")
    return answer


def _signal_session(pid: int, number: signal.Signals) -> None:
    """The child leads a process group of its own; one that runs as another account ends by its closed stdin."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
