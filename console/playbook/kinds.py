"""What steps are made of: actions that plan, checks that look, and what both are given to do it with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from console.actions.desk import Actions
from console.actions.scene import Scene, look
from console.config import Config, time_span
from console.errors import ConfigError
from console.fleet.model import RoleStatus
from console.host.client import HostClient
from console.playbook.model import Begun, Draft, Seen, Setting, Settings, Shown
from console.playbook.settings import Input
from console.queue.client import QueueClient


class Inputs:
    """The inputs of one step, every placeholder filled."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def has(self, name: str) -> bool:
        return self._settings.get(name, "") not in ("", ())

    def text(self, name: str, default: str = "") -> str:
        found = self._settings.get(name, default)
        return found if isinstance(found, str) else str(found)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list; of a text its words, as a value that was found by another step holds them."""
        found = self._settings.get(name, ())
        return found if isinstance(found, tuple) else tuple(str(found).split())

    def number(self, name: str, default: int = 0) -> int:
        """ConfigError: it is no whole number."""
        found = self._settings.get(name, default)
        try:
            return int(found) if not isinstance(found, tuple) else int("")
        except ValueError:
            raise ConfigError(name, f"found {found!r}", "expected a whole number") from None

    def truth(self, name: str, default: bool = False) -> bool:
        found = self._settings.get(name, default)
        return found if isinstance(found, bool) else str(found).lower() in ("true", "yes", "1")

    def span(self, name: str, default: float = 0.0) -> float:
        """Seconds. ConfigError: it is no time span."""
        found = self._settings.get(name, default)
        if isinstance(found, int | float) and not isinstance(found, bool):
            return float(found)
        return time_span(self.text(name), name)


class Given:
    """What actions and checks work with."""

    def __init__(
        self,
        actions: Actions,
        config: Config,
        host: HostClient,
        reader: QueueClient | None,
        *,
        values: Mapping[str, Setting],
        plans: Mapping[int, Sequence[str]] | None = None,
        drafts: Mapping[str, Draft] | None = None,
        tell: Callable[[str, float | None], None] = lambda text, remaining: None,
        stop: asyncio.Event | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`plans`: ids of the plans that each step has applied. `drafts`: files that a person has edited, by path."""
        self.actions = actions
        self.config = config
        self.host = host
        self.reader = reader
        self.values = dict(values)
        self.plans = {number: tuple(ids) for number, ids in (plans or {}).items()}
        self.drafts = dict(drafts or {})
        self.tell = tell
        self.stop = stop or asyncio.Event()
        self.now = now

    @property
    def role(self) -> str:
        return str(self.values.get("role", ""))

    async def scene(self) -> Scene:
        """The fleet as it is now. HostError: how the units are is not known."""
        self.host.refresh()
        return await look(self.config, self.host, self.reader)

    async def status(self, role: str = "") -> RoleStatus:
        """The role as it is now. HostError, ConfigError: there is no such role."""
        return (await self.scene()).status(role or self.role)


Plans = Callable[[Given, Inputs], Awaitable[Shown]]
Begins = Callable[[Given, Inputs], Awaitable[Begun]]
Looks = Callable[[Given, Inputs, Begun], Awaitable[Seen]]


async def once(given: Given, inputs: Inputs) -> Begun:
    """A check that looks once, or holds for the `for` of its inputs."""
    return Begun(seconds=inputs.span("for"))


class Action:
    """A name that a step's `action` may have.

    `plan` says what it would do; it changes nothing, and asked again after a part was done it plans the rest. `finds`:
    names of the values that it gives to the steps after it. `back`: how it is taken back when undoing its plans is not
    the way, or does not go.
    """

    def __init__(
        self,
        name: str,
        about: str,
        plan: Plans,
        inputs: Mapping[str, Input] | None = None,
        *,
        finds: tuple[str, ...] = (),
        back: Plans | None = None,
        changes: bool = True,
    ) -> None:
        self.name = name
        self.about = about
        self.plan = plan
        self.inputs = dict(inputs or {})
        self.finds = finds
        self.back = back
        self.changes = changes


WITHIN = Input(kind="span", about="until then it is looked at again and again")
FOR = Input(kind="span", about="it must hold for so long")


class Check:
    """A name that a step's `check`, or a condition, may have. Every check has the inputs `within` and `for`, too."""

    def __init__(
        self,
        name: str,
        about: str,
        look: Looks,
        inputs: Mapping[str, Input] | None = None,
        *,
        begin: Begins = once,
    ) -> None:
        self.name = name
        self.about = about
        self.look = look
        self.inputs = {**(inputs or {}), "within": WITHIN, "for": FOR}
        self.begin = begin


class Registry:
    """Every action and check by name."""

    def __init__(self, actions: Sequence[Action], checks: Sequence[Check]) -> None:
        self.actions = {each.name: each for each in actions}
        self.checks = {each.name: each for each in checks}
