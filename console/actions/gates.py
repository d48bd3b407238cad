"""What may be done at all: read-only mode, what the preset can do safely, rights in the database and on the host."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import get_args

from console.errors import HostError, Problem, QueueError
from console.fleet.model import Process
from console.fleet.operations import HostRights
from console.fleet.plan import Consent, JobVerb, QueueVerb, UnitVerb, Verb
from console.host.client import HostClient
from console.queue.writer import QueueWriter

_WHOLE: dict[Verb, tuple[UnitVerb, ...]] = {"drain": ("stop", "kill"), "scale": ("start", "stop", "kill")}
AGENT_BY_SUDO = 'agent = ["sudo", "-n", "worktop", "agent"] in [host]'
_RIGHTS_KEPT = 30.0  # seconds the answer of polkit is good for
ROW_VERBS: tuple[Verb, ...] = (*get_args(JobVerb), *get_args(QueueVerb), "undo")
UNIT_VERBS: tuple[UnitVerb, ...] = get_args(UnitVerb)


class Gates:
    """Answers None where the way is free, and else a consent of kind "refused"."""

    def __init__(self, host: HostClient, queue: QueueWriter | None, read_only: str) -> None:
        self._host = host
        self._queue = queue
        self._read_only = read_only
        self._rights: HostRights | Problem | None = None
        self._rights_taken = 0.0

    async def of(self, verb: Verb) -> Consent | None:
        """Whether a verb of rows or queues may be done ("undo": any of them undone). QueueError: no answer."""
        if self._read_only:
            return self._only_looked_at()
        if self._queue is None:
            return Consent(
                kind="refused",
                why=("no database is configured",),
                allow=("set [database] dsn or service in worktop.toml, or PGHOST, PGSERVICE, …",),
            )
        await self._queue.ready()
        refusal = self._queue.refusal(verb)
        if refusal:
            return Consent(kind="refused", why=(refusal,))
        missing = await self._queue.missing_rights(verb)
        if missing:
            return Consent(
                kind="refused", why=("the database account may not change these rows",), allow=tuple(missing)
            )
        return None

    async def unit(self, verb: UnitVerb, role: str) -> Consent | None:
        """Whether the verb may be done to the units of a role."""
        rights = await self._able()
        if isinstance(rights, Consent):
            return rights
        if rights.allows(verb, role):
            return None
        known = next((one for one in rights.units if one.role == role), None)
        because = f": {known.problem}" if known is not None and known.problem else ""
        why = f"{rights.user} may not {verb} units of {role}{because}"
        rule: tuple[str, ...] = (f"# {rights.rule_path}\n{rights.rule}",) if rights.rule else ()
        if verb in ("enable", "disable"):
            rule = (AGENT_BY_SUDO, "worktop doctor --grants: a rule that allows it for every unit of the host")
        return Consent(kind="refused", why=(why,), allow=rule)

    async def files(self, crontab: str = "") -> Consent | None:
        """Whether unit files may be written and systemd made to read them again, or the crontab of that path."""
        rights = await self._able()
        if isinstance(rights, Consent):
            return rights
        hello = self._host.facts.hello
        own = "/spool/cron/" in crontab and crontab.rpartition("/")[2] == rights.user
        if rights.uid == 0 or own or (not crontab and hello is not None and hello.manager == "user"):
            return None
        what = crontab or "unit files"
        why = f"{rights.user} may not write {what}, and no rule of polkit allows it"
        return Consent(kind="refused", why=(why,), allow=(AGENT_BY_SUDO,))

    async def signal(self, process: Process | None) -> Consent | None:
        """Whether a process may be signalled; None: it is not watched, and shows when it is tried."""
        rights = await self._able()
        if isinstance(rights, Consent):
            return rights
        if rights.processes == "own" and process is not None and process.uid not in (-1, rights.uid):
            why = f"pid {process.ident.pid} belongs to {process.user}, and {rights.user} may not signal it"
            return Consent(kind="refused", why=(why,), allow=(AGENT_BY_SUDO,))
        return None

    async def all(self, roles: tuple[str, ...]) -> Mapping[Verb, Consent]:
        """Every verb, for menus; raises nothing."""
        found: dict[Verb, Consent] = {}
        for verb in ROW_VERBS:
            try:
                found[verb] = await self.of(verb) or Consent()
            except QueueError as error:
                found[verb] = Consent(kind="refused", why=(error.problem.line(),))
        for unit_verb in UNIT_VERBS:
            if self._read_only:
                found[unit_verb] = self._only_looked_at()
                continue
            refusals = [await self.unit(unit_verb, role) for role in roles]
            refused = next((one for one in refusals if one is not None), None)
            free = not roles or any(one is None for one in refusals)
            found[unit_verb] = refused if refused is not None and not free else Consent()
        for whole, parts in _WHOLE.items():
            found[whole] = next((found[part] for part in parts if found[part].kind == "refused"), Consent())
        if roles and not self._read_only:  # what was done to units is undone without a database
            found["undo"] = Consent()
        found["limits"] = await self.files() or Consent()
        return found

    async def _able(self) -> HostRights | Consent:
        """What the agent may do; or why nothing may be done on the host at all."""
        if self._read_only:
            return self._only_looked_at()
        rights = await self._host_rights()
        if isinstance(rights, Problem):
            return Consent(kind="refused", why=(rights.line(),))
        if rights.read_only:
            return Consent(kind="refused", why=("the host agent was started with --read-only",))
        return rights

    async def _host_rights(self) -> HostRights | Problem:
        if self._rights is None or time.monotonic() - self._rights_taken > _RIGHTS_KEPT:
            try:
                self._rights = await self._host.rights()
            except HostError as error:
                self._rights = error.problem
            self._rights_taken = time.monotonic()
        return self._rights

    def _only_looked_at(self) -> Consent:
        return Consent(kind="refused", why=(f"read-only: {self._read_only}",), allow=("start worktop without it",))
