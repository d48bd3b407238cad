"""Which running rows may be taken from their holders, and what must happen first.

DEAD: taken. ALIVE_SLOW, HUNG: the holder is stopped first and must be gone, or, where the queue rejects late finishes
and the person types the role's name, left running. UNKNOWN: only typed, with what is not known. A holder that works
within its lease keeps its rows, always.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from console.actions import words
from console.actions.draft import Draft
from console.actions.gates import Gates
from console.actions.holders import LIVE, Held, Holders, ident_of, is_overdue, process_of, stopping_unit
from console.config import Config
from console.fleet.counts import summed
from console.fleet.model import Holder, Ident, Process, Unit, Verdict
from console.fleet.plan import Selection, Step
from console.host.client import HostClient
from console.queue.writer import QueueWriter
from console.text import ago

STOP_TIMEOUT = 120.0  # seconds; systemd itself kills after TimeoutStopSec=, by default 90
GONE_TIMEOUT = 10.0  # after its unit has stopped
TERM_TIMEOUT = 20.0  # so long may a process take to end itself
KILL_TIMEOUT = 5.0
START_TIMEOUT = 60.0
_TOLD_AT_MOST = 3  # holders that keep their rows are named up to so many
_ALL: frozenset[Verdict] = frozenset({"DEAD", "ALIVE_SLOW", "HUNG", "UNKNOWN", "FINISHED_BUT_CLAIMED"})
_WORDS: dict[Verdict, str] = {
    "DEAD": "dead",
    "ALIVE_SLOW": "alive and slow",
    "HUNG": "hung",
    "UNKNOWN": "unknown",
    "FINISHED_BUT_CLAIMED": "done already",
    "ALIVE": "working",
}


class Taking:
    """Fills in the draft of a plan that takes rows from their holders."""

    def __init__(self, config: Config, host: HostClient, queue: QueueWriter, gates: Gates, holders: Holders) -> None:
        self._config = config
        self._host = host
        self._queue = queue
        self._gates = gates
        self._holders = holders

    async def fill(self, draft: Draft, selection: Selection, held: Sequence[Held]) -> None:
        """Sort the holders and plan for each. QueueError."""
        asked = draft.asked
        wanted = set(asked.verdicts) or (_ALL if asked.rows else {"DEAD"})
        chosen = [one for one in held if one.verdict in wanted and not _in_time(one)]
        keeping = [one for one in held if one.verdict == "ALIVE" or (one.verdict in wanted and _in_time(one))]
        others = [one for one in held if one not in chosen and one not in keeping]
        draft.claims += [one.claim for one in (chosen or others or keeping)]
        self._tell_left_out(draft, keeping, others)
        if dead := [one for one in chosen if one.verdict == "DEAD"]:
            draft.reasons.append(_proved(len(dead), len(chosen)))
        ended, beneath = list(dead), []
        for one in chosen:
            if one.verdict == "DEAD":
                continue
            if one.verdict not in LIVE:
                self._unknown(draft, one)
                beneath.append(one)
            elif asked.leave_running:
                self._leave_running(draft, one)
                beneath.append(one)
            else:
                await self._end_first(draft, one)
                ended.append(one)
        if ended:
            await draft.add(_narrowed(selection, ended))
        if beneath:
            await draft.add(_narrowed(selection, beneath, overdue_only=_leases(beneath)), beneath=True)
        poisoned = summed(part.survey.poisoned for part in draft.parts)
        if poisoned.n:
            draft.warnings.append(
                f"{words.jobs_word(poisoned)} taken from a holder {asked.quarantine_after} times already: to failed, "
                "instead of waiting"
            )

    def _tell_left_out(self, draft: Draft, keeping: list[Held], others: list[Held]) -> None:
        for one in keeping[:_TOLD_AT_MOST]:
            draft.warnings.append(
                f"{words.holder_word(one.holder)} keeps {words.jobs_word(one.rows.rows)}: {_keeps(one)}"
            )
        if len(keeping) > _TOLD_AT_MOST:
            draft.warnings.append(f"{len(keeping) - _TOLD_AT_MOST} more holders that work keep theirs")
        if not others:
            return
        verdicts = tuple(sorted({one.verdict for one in others}))
        rows = summed(one.rows.rows for one in others)
        stay = "stays" if rows.n == 1 else "stay"
        kinds = " or ".join(_WORDS[verdict] for verdict in verdicts)
        command = draft.asked.command(verdicts=verdicts)
        told = command or "name the verdict"
        draft.warnings.append(f"{words.jobs_word(rows)} {stay} with holders that are {kinds}: {told}")
        if command:
            draft.instead.append(command)

    async def _end_first(self, draft: Draft, one: Held) -> None:
        """The steps that end a live holder, so that it cannot go on with what is given to another."""
        facts = self._host.facts
        who = words.holder_word(one.holder)
        ident, unit = ident_of(one, facts), stopping_unit(one, facts, self._config.roles)
        if ident is not None and (one.holder is None or one.holder.pid is None):
            draft.typed.append(f"the row names no process: that pid {ident.pid} is {who} is inferred, and it is ended")
        if ident is None:
            draft.refused.append(f"{who} lives, and its process is not known well enough to end it first")
        elif any(step.ident == ident for step in draft.before):
            return
        elif unit is not None:
            gate = await self._gates.unit("stop", _role_of_unit(unit, self._config) or one.claim.role)
            draft.refuse(gate, f"{who} lives and must be stopped first: ")
            draft.reasons.append(f"{who} lives: it is stopped first, so that it cannot go on with these jobs")
            draft.warnings.append(f"whatever else {unit.name} does ends too")
            draft.before += [_stop(unit, ident), _wait(ident, GONE_TIMEOUT)]
            if unit.active in ("active", "activating", "reloading"):
                self._start_again(draft, unit)
        else:
            process = process_of(one, facts)
            gate = await self._gates.signal(process)
            draft.refuse(gate, f"{who} lives and must be ended first: ")
            draft.reasons.append(f"{who} lives, in no unit of a role: the process is ended first")
            draft.before += _end(ident, process)
        if draft.refused and self._queue.late_finish == "rejected":
            command = draft.asked.command(leave_running=True, verdicts=draft.asked.verdicts)
            if command:
                draft.allow.append(command)

    def _start_again(self, draft: Draft, unit: Unit) -> None:
        role = next((one for one in self._config.roles if one.template and one.template == unit.template), None)
        if role is not None and unit.name not in role.desired_units():
            draft.warnings.append(f"{unit.name} is none of the instances {role.name} should have: it stays stopped")
        else:
            draft.after.append(_start(unit))

    def _leave_running(self, draft: Draft, one: Held) -> None:
        who = words.holder_word(one.holder)
        if self._queue.late_finish != "rejected":
            draft.refused.append(f"{who} lives, and this queue takes its end of a job for the end of the job")
            draft.allow.append(draft.asked.command(leave_running=False))
            return
        draft.typed.append(
            f"{who} lives and is left running: what it does on these jobs is done twice, only its end is rejected"
        )

    def _unknown(self, draft: Draft, one: Held) -> None:
        who, jobs = words.holder_word(one.holder), words.jobs_word(one.rows.rows)
        proof = "; ".join(one.claim.evidence) or "nothing identifies it"
        if one.verdict == "FINISHED_BUT_CLAIMED":
            draft.typed.append(f"{jobs} of {who} are done already, and would be done again: {proof}")
        else:
            accepted = "" if self._queue.late_finish == "rejected" else "; if it lives, its late finish is accepted"
            draft.typed.append(f"not known: whether {who} lives ({jobs}): {proof}{accepted}")


def _in_time(one: Held) -> bool:
    """Nothing proves the holder dead, and no lease of these rows has run out."""
    if one.verdict in ("DEAD", "FINISHED_BUT_CLAIMED"):
        return False
    job = one.claim.job
    return one.verdict == "ALIVE" or (job.overdue is not None and not is_overdue(job))


def _leases(held: Sequence[Held]) -> bool:
    """The queue tells when leases run out."""
    return all(one.claim.job.overdue is not None for one in held)


def _keeps(one: Held) -> str:
    overdue = one.claim.job.overdue
    if overdue is None:
        return "it lives, and the row has no lease"
    works = "it works" if one.verdict == "ALIVE" else "nothing proves it dead"
    return f"{works}, and its lease is valid for another {ago(-overdue)}"


def _narrowed(selection: Selection, held: Sequence[Held], overdue_only: bool = False) -> Selection:
    """The rows of these holders. Named rows stay named, those of the others are left out."""
    rows = tuple(row for one in held for row in one.refs(overdue_only=overdue_only))
    holders = tuple(one.holder if one.holder is not None else Holder() for one in held)
    return msgspec.structs.replace(selection, rows=rows, holders=holders, overdue_only=overdue_only)


def _proved(dead: int, of: int) -> str:
    """`dead` of all holders whose rows are taken."""
    if dead < of:
        return f"{dead} of {of} holders {'is' if dead == 1 else 'are'} proved dead"
    who = {1: "the holder is", 2: "both holders are"}.get(dead, f"all {dead} holders are")
    return f"{who} proved dead"


def _role_of_unit(unit: Unit, config: Config) -> str:
    return next((role.name for role in config.roles if role.template and role.template == unit.template), "")


def _stop(unit: Unit, ident: Ident) -> Step:
    return Step(
        kind="unit",
        title=f"stop {unit.name} (pid {ident.pid})",
        text=f"systemctl stop {unit.name}",
        unit=unit.name,
        verb="stop",
        ident=ident,
        timeout=STOP_TIMEOUT,
        undo=f"systemctl start {unit.name}",
    )


def _start(unit: Unit) -> Step:
    return Step(
        kind="unit",
        title=f"start {unit.name} again",
        text=f"systemctl start {unit.name}",
        unit=unit.name,
        verb="start",
        timeout=START_TIMEOUT,
    )


def _wait(ident: Ident, timeout: float) -> Step:
    return Step(
        kind="wait",
        title=f"wait until pid {ident.pid} is gone, at most {timeout:g} s",
        text="if it is not gone then, nothing is taken from it",
        ident=ident,
        timeout=timeout,
    )


def _end(ident: Ident, process: Process | None) -> list[Step]:
    """TERM, and KILL when that was not enough; one that is stopped gets its TERM when it is continued."""
    stopped = process is not None and process.state == "T"

    def signal(name: str, title: str, text: str) -> Step:
        return Step(kind="signal", title=title, text=text, ident=ident, signal=name)

    same = f"through a pidfd, if pid {ident.pid} is still the process that started at tick {ident.start}"
    steps = [signal("TERM", f"send SIGTERM to pid {ident.pid}", same)]
    if stopped:
        steps.append(signal("CONT", f"send SIGCONT to pid {ident.pid}: it is stopped, and takes no SIGTERM", same))
    return [
        *steps,
        Step(
            kind="wait",
            title=f"wait until pid {ident.pid} is gone, at most {TERM_TIMEOUT:g} s",
            text="then it is killed",
            ident=ident,
            timeout=TERM_TIMEOUT,
        ),
        signal("KILL", f"send SIGKILL to pid {ident.pid}, if it is still there", same),
        _wait(ident, KILL_TIMEOUT),
    ]
