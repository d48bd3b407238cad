"""The jobs a unit holds when something is done to it, and what becomes of them."""

from __future__ import annotations

from collections.abc import Sequence

from console.actions import words
from console.actions.scene import look
from console.actions.steps.doing import Doing
from console.errors import WorktopError
from console.fleet.model import Ident, Job
from console.fleet.plan import Question, RowRef, Suggestion


class HeldBefore:
    """Jobs of one holder, each with the token it was seen with."""

    def __init__(self, doing: Doing, holder: str, role: str, jobs: Sequence[Job]) -> None:
        self._doing = doing
        self._holder = holder
        self._role = role
        self._jobs = tuple(jobs)

    @classmethod
    async def look(cls, doing: Doing, key: str) -> HeldBefore | None:
        """Of the worker with this key (its unit, or "pid:start"); None when it holds nothing, or that is not known."""
        if doing.reader is None:
            return None
        try:
            scene = await look(doing.config, doing.host, doing.reader)
        except WorktopError:
            return None
        found = scene.worker(key)
        if found is None or not found[1].jobs:
            return None
        role, worker = found
        return cls(doing, key, role.name, [claim.job for claim in scene.claims(worker)])

    async def still(self) -> tuple[Job, ...]:
        """Those that are still claimed as they were; QueueError is taken for "all"."""
        assert self._doing.reader is not None
        left = []
        for job in self._jobs:
            try:
                now = await self._doing.reader.job(job.id)
            except WorktopError:
                return self._jobs
            if now is not None and now.state == "running" and (now.token, now.holder) == (job.token, job.holder):
                left.append(now)
        return tuple(left)

    async def tell_what_became_of_them(self) -> None:
        """When all steps are over: those that are left are worth a reclaim, exactly they, and only with the token they
        have. What a step of the same plan does to rows is told by that step."""
        left = await self.still()
        ended = [job.id for job in self._jobs if job.id not in {one.id for one in left}]
        if ended and all(step.kind != "sql" for step in self._doing.plan.steps):
            jobs = f"job {ended[0]}" if len(ended) == 1 else f"{len(ended)} jobs"
            self._doing.seen.append(
                f"{jobs} of {self._holder} {'was' if len(ended) == 1 else 'were'} finished or released"
            )
        if not left:
            return
        ids = [job.id for job in left]
        named = f"job {ids[0]}" if len(ids) == 1 else f"{len(ids)} jobs"
        self._doing.unseen.append(
            f"{named} that {self._holder} held {'is' if len(ids) == 1 else 'are'} still claimed by it"
        )
        self._doing.next.append(
            Suggestion(
                title=f"Reclaim {named} that {self._holder} held",
                command=words.command("reclaim", ids=ids),
                verb="reclaim",
                role=self._role,
                rows=tuple(RowRef(job.id, job.token) for job in left),
            )
        )


def kill_question(
    step: int, who: str, said: str, jobs: Sequence[Job], *, unit: str = "", ident: Ident | None = None
) -> Question:
    """What is asked when somebody has not ended in time; `said`: what is the case, a sentence."""
    ids = ", ".join(job.id for job in jobs)
    holds = f"; it holds job{'' if len(jobs) == 1 else 's'} {ids}" if jobs else ""
    return Question(
        kind="kill",
        step=step,
        title=f"Kill {who}?",
        text=(
            f"{said}{holds}",
            "killed: what it holds stays claimed until it is reclaimed, which is offered afterwards",
            "not killed: it goes on until it has finished"
            + (", and its unit is not stopped: by Restart= systemd may start it again" if unit else ""),
        ),
        unit=unit,
        ident=ident,
        jobs=tuple(job.id for job in jobs),
    )
