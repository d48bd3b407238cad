"""What the steps of one apply share: the plan, the layers below, the journal, and what has come of it so far."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from console.actions.journal import Journal
from console.actions.records import Record
from console.config import Config
from console.ending import end
from console.errors import ConfigError
from console.fleet.model import Count, Ident
from console.fleet.plan import Blocked, Plan, Progress, Question, StepOutcome, Suggestion
from console.host.client import HostClient
from console.queue.client import QueueClient
from console.queue.writer import QueueWriter

T = TypeVar("T")
_AGENT_BACK = 60.0  # seconds a lost agent may take to be there again
OnProgress = Callable[[Progress], None]
OnQuestion = Callable[[Question], Awaitable[bool]]
_TELL_EVERY = 0.5  # seconds between two words of a wait


class StepFailed(Exception):
    """A step did not do what the plan needs; the rest of the plan is not done."""

    def __init__(self, outcome: StepOutcome) -> None:
        self.outcome = outcome


class Doing:
    """One apply of one plan."""

    def __init__(
        self,
        plan: Plan,
        config: Config,
        host: HostClient,
        queue: QueueWriter | None,
        reader: QueueClient | None,
        journal: Journal,
        record: Record | None = None,
        on_progress: OnProgress | None = None,
        on_question: OnQuestion | None = None,
        stop: asyncio.Event | None = None,
        hold: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`record`: the journal that a plan of verb undo restores from. `hold`: lock the roles on the host again, after
        its agent was lost."""
        self.plan = plan
        self.config = config
        self.host = host
        self.queue = queue
        self.reader = reader
        self.journal = journal
        self.record = record
        self.stop = stop or asyncio.Event()
        self._on_progress = on_progress
        self._on_question = on_question
        self._hold = hold
        self.at = 0  # index of the step
        self.skip: dict[Ident, str] = {}  # processes that need not be ended any more, and why
        self.rows = 0
        self.blocked: list[Blocked] = []
        self.left_out: list[str] = []
        self.unsure = 0
        self.seen: list[str] = []  # sentences: what was looked at after a step
        self.unseen: list[str] = []
        self.next: list[Suggestion] = []
        self.afterwards: list[Callable[[], Awaitable[None]]] = []  # what is looked at when all steps are over
        self.ends_here = ""  # why a step that was done wants the rest left alone; "" : it does not
        self.lost = False  # the agent was lost and did not come back

    @property
    def writer(self) -> QueueWriter:
        if self.queue is None:
            raise no_database()
        return self.queue

    def tell(
        self,
        text: str = "",
        done: int = 0,
        total: Count | None = None,
        per_second: float | None = None,
        remaining: float | None = None,
    ) -> None:
        """How far the step has come."""
        if self._on_progress is not None:
            self._on_progress(
                Progress(step=self.at, text=text, done=done, total=total, per_second=per_second, remaining=remaining)
            )

    async def ticking(self, call: Coroutine[Any, Any, T], timeout: float) -> T:
        """Wait for a call of the host, telling how long it may still take."""
        task = asyncio.ensure_future(call)
        began = time.monotonic()
        try:
            while True:
                done, _ = await asyncio.wait({task}, timeout=_TELL_EVERY)
                if done:
                    return await task
                self.tell(remaining=max(0.0, timeout - (time.monotonic() - began)))
        finally:
            await end(task)

    async def agent_is_back(self, greetings: int) -> bool:
        """Wait for another agent than the first `greetings`, and for what it says of the units. HostError: another
        console has begun to act on the role meanwhile."""
        deadline = time.monotonic() + _AGENT_BACK
        while time.monotonic() < deadline:
            facts = self.host.facts
            if self.host.greetings > greetings and facts.agent.problem is None and facts.units.problem is None:
                if self._hold is not None:
                    await self._hold()
                return True
            self.tell(text="the host agent is lost; waiting for another", remaining=deadline - time.monotonic())
            await asyncio.sleep(_TELL_EVERY)
        return False

    async def agreed(self, question: Question) -> bool:
        """What the person answers; no when nobody can be asked, or the plan was stopped meanwhile."""
        if self._on_question is None or self.stop.is_set():
            return False
        answer = asyncio.ensure_future(self._on_question(question))
        stopped = asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({answer, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return answer.done() and answer.result()
        finally:
            for task in (answer, stopped):
                task.cancel()


def no_database() -> ConfigError:
    return ConfigError(
        "database", "none is configured", "set [database] dsn or service in worktop.toml, or PGHOST, PGSERVICE, …"
    )
