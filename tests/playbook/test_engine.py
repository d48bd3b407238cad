"""Runs of playbooks: followed, left, taken up, taken back; cut off at every write. Rows, journals, audit are real."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from console import state as state_module
from console.actions import audit, journal
from console.actions.desk import Actions
from console.errors import ConfigError, RefusedError
from console.fleet.plan import RowRef
from console.playbook import journal as run_journal
from console.playbook.clock import Clock, Moment
from console.playbook.desk import Playbooks
from console.playbook.engine import Run
from console.playbook.kinds import Action, Check, Given, Inputs, Registry
from console.playbook.model import Begun, Seen, Shown, StepEnd
from console.playbook.registry import ACTIONS, CHECKS
from console.playbook.settings import Input
from tests.actions.conftest import World

# one process: who runs a playbook is known to the whole host
pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.xdist_group("playbook")]

MEND = """\
+++
name = "mend"
title = "Throw the failed letters away"
[defaults]
batch = 1000
+++
## 1. Read
```toml
action = "note"
```

## 2. Discard
If you stop here, they are gone.
```toml
action = "discard"
after = [{ check = "letters", at_most = 0 }]
```

## 3. Report
```toml
action = "report"
```
"""


async def _discard(given: Given, inputs: Inputs) -> Shown:
    return Shown(plan=await given.actions.plan_jobs("discard", role="letters"), found={"seen": "yes"})


async def _one_by_one(given: Given, inputs: Inputs) -> Shown:
    """One job at a time."""
    every = await given.actions.plan_jobs("discard", role="letters")
    if every.consent.empty:
        return Shown(nothing="none is left")
    rows = tuple(RowRef(job.id, job.token) for job in every.samples[:1])
    return Shown(plan=await given.actions.plan_jobs("discard", rows=rows), more=True)


async def _letters(given: Given, inputs: Inputs, begun: Begun) -> Seen:
    assert given.reader is not None
    facts = (await given.reader.poll()).value
    assert facts is not None
    number = sum(count.waiting.n + count.failed.n for count in facts.counts)
    return Seen(state="holds" if number <= inputs.number("at_most") else "not", text=f"{number} are left")


REGISTRY = Registry(
    (
        *ACTIONS,
        Action("discard", "failed letters are deleted", _discard, finds=("seen",)),
        Action("one-by-one", "the same, one at a time", _one_by_one),
    ),
    (*CHECKS, Check("letters", "so many are left", _letters, {"at_most": Input(kind="number")})),
)


class Still(Clock):
    """A clock that is set by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 1000.0

    def now(self) -> Moment:
        return Moment(wall=self.at, boot=self.at, boot_id="b")


def desk(world: World, folder: Path, text: str = MEND, clock: Clock | None = None, read_only: str = "") -> Playbooks:
    folder.mkdir(exist_ok=True)
    (folder / "x.md").write_text(text)
    return Playbooks(
        world.actions(read_only), world.config, world.host, world.reader, registry=REGISTRY, places=(folder,),
        clock=clock,
    )  # fmt: skip


def failed_letters(world: World) -> list[tuple[Any, ...]]:
    world.rows("DELETE FROM worktop_jobs")
    world.add(3)
    world.fail_all()
    return world.images()


async def forward(run: Run) -> list[StepEnd]:
    ends = []
    while run.step is not None:
        ends.append(await run.go(await run.show()))
        if ends[-1].state not in ("done", "skipped"):
            break
    return ends


async def back(run: Run) -> list[StepEnd]:
    ends = []
    while run.status.state in ("open", "done"):
        try:
            view = await run.show_back()
        except ConfigError:
            break  # all of it was taken back, and worktop did not come to say so
        ends.append(await run.back(view))
        if ends[-1].state != "undone":
            break
    return ends


async def test_followed_to_the_end_and_taken_back(world: World, tmp_path: Path) -> None:
    before = failed_letters(world)
    playbooks = desk(world, tmp_path / "books")
    views = await playbooks.preview("mend", {})
    assert views[1].shown is not None and views[1].shown.plan is not None and world.images() == before
    assert playbooks.runs() == (), "a preview leaves nothing"
    run = await playbooks.start("mend", {})
    ends = await forward(run)
    assert [end.state for end in ends] == ["done"] * 3 and "0 are left" in ends[1].evidence, ends
    status = run.status
    assert status.state == "done" and status.values["seen"] == "yes"
    assert world.images() == []
    report = Path(status.report).read_text()
    plan = status.steps[1].plans[0]
    assert f"worktop undo {plan}" in report and "followed to its end" in report
    entries = world.actions().audit()
    assert [(entry.verb, entry.state) for entry in entries[:2]] == [("playbook", "done"), ("discard", "done")]
    assert entries[1].why == "playbook mend, step 2: Discard"
    ends = await back(run)
    assert [end.state for end in ends] == ["undone"] * 3 and run.status.state == "rolled-back", ends
    assert world.images() == before
    run.close()
    with pytest.raises(ConfigError, match="it is over: rolled-back"):
        await playbooks.resume("mend")


async def test_what_may_not_be_done(world: World, tmp_path: Path) -> None:
    failed_letters(world)
    playbooks = desk(world, tmp_path / "books")
    with pytest.raises(ConfigError, match="it takes no role"):
        await playbooks.start("mend", {"role": "letters"})
    with pytest.raises(RefusedError, match="read-only: a reason"):
        await desk(world, tmp_path / "books", read_only="a reason").start("mend", {})
    run = await playbooks.start("mend", {})
    with pytest.raises(RefusedError, match=r"playbook mend: the worktop of root \(pid \d+\) runs it now"):
        await playbooks.start("mend", {})
    assert playbooks.status("mend").held
    with pytest.raises(ConfigError, match="nothing has been done"):
        await run.show_back()
    view = await run.show()
    with pytest.raises(RefusedError, match="it may not be skipped"):
        await run.skip(view)
    await run.go(view)
    with pytest.raises(RefusedError, match="step 2 is the next one"):
        await run.go(view)
    run.close()
    again = await playbooks.start("mend", {})
    assert again.status.run == run.status.run and again.status.number == 2, "the open one is taken up"
    assert again.abandon("enough").state == "abandoned" and again.step is None
    again.close()


async def test_of_two_open_runs_of_a_playbook_one_is_named(world: World, tmp_path: Path) -> None:
    playbooks = desk(world, tmp_path / "books", MEND.replace("[defaults]", '[needs]\nrole = "whose"\n[defaults]'))
    runs = []
    for role in ("letters", "films"):
        run = await playbooks.start("mend", {"role": role})
        runs.append(run.status.run)
        run.close()
    with pytest.raises(ConfigError, match=r"2 such runs are open: .*\(films\).*\(letters\)"):
        playbooks.status("mend")
    assert playbooks.status("mend", "films").run == playbooks.status("films").run == runs[1]
    assert playbooks.status(runs[0]).run == runs[0]


async def test_a_step_that_asks_again_until_nothing_is_left(world: World, tmp_path: Path) -> None:
    before = failed_letters(world)
    run = await desk(world, tmp_path / "books", MEND.replace('"discard"', '"one-by-one"')).start("mend", {})
    ends = await forward(run)
    assert [end.state for end in ends] == ["done"] * 3 and len(run.status.steps[1].plans) == 3
    await back(run)
    assert world.images() == before
    run.close()


async def test_a_step_that_did_not_bring_it_about_fails_and_can_be_tried_again(world: World, tmp_path: Path) -> None:
    failed_letters(world)
    world.add(1, "films")
    before = world.images()
    run = await desk(world, tmp_path / "books").start("mend", {})
    ends = await forward(run)
    assert (ends[-1].state, ends[-1].text) == ("failed", "1 are left") and run.status.steps[1].state == "failed"
    world.rows("DELETE FROM worktop_jobs")
    ends = await forward(run)
    assert [end.state for end in ends] == ["done", "done"], "what was done is not done again"
    assert len(run.status.steps[1].plans) == 1
    await back(run)
    assert world.images()[:3] == before[:3]
    run.close()


async def test_a_wait_is_left_and_goes_on(world: World, tmp_path: Path) -> None:
    world.rows("DELETE FROM worktop_jobs")
    text = MEND.replace('action = "discard"', 'check = "letters"\ninputs = { at_most = 0, for = "60s" }')
    clock = Still()
    playbooks = desk(world, tmp_path / "books", text.replace("after =", "#"), clock)
    run = await playbooks.start("mend", {})
    await run.go(await run.show())
    stop = asyncio.Event()
    stop.set()
    end = await run.go(await run.show(), stop=stop)
    assert end.state == "left" and run.status.steps[1].state == "waits" and run.status.waits_until == 1060.0
    run.close()
    clock.at += 45
    run = await playbooks.resume("mend")
    assert (await run.show()).waits == 15.0
    clock.at += 15
    assert (await run.go(await run.show())).state == "done"
    assert (await run.back(await run.show_back())).state == "undone"
    world.add(1)
    end = await run.go(await run.show(), stop=stop)
    assert (end.state, end.text) == ("failed", "1 are left") and (await run.show()).waits is None, "it begins anew"
    run.close()


class Killed(BaseException):
    """The process is gone."""


class Axe:
    """Kills the process at one of its writes: before it, or when half of it is written."""

    def __init__(self, at: int, how: Literal["before", "torn"]) -> None:
        self._left = at
        self._how = how
        self.fell = False
        self._open: list[int] = []

    def write_all(self, descriptor: int, data: bytes) -> None:
        self._left -= 1
        if self.fell or self._left < 0:
            if not self.fell and self._how == "torn":
                os.write(descriptor, data[: len(data) // 2])
            self.fell = True
            raise Killed
        state_module.write_all(descriptor, data)

    def append_only(self, path: Path, *, new: bool = False) -> int:
        if self.fell:
            raise Killed
        descriptor = state_module.append_only(path, new=new)
        self._open.append(descriptor)
        return descriptor

    def clear(self) -> None:
        """What the kernel does for a process that is gone."""
        for descriptor in self._open:
            with contextlib.suppress(OSError):
                os.close(descriptor)


@contextlib.contextmanager
def killed(axe: Axe) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (journal, audit, run_journal):
            patch.setattr(module, "write_all", axe.write_all)
            patch.setattr(module, "append_only", axe.append_only)
        with contextlib.suppress(Killed):
            yield
    axe.clear()


def plans_done(actions: Actions, verb: str) -> int:
    """How many plans of this verb have changed rows and stand."""
    return sum(each.verb == verb and each.state != "undone" and each.rows > 0 for each in actions.undoable())


async def test_killed_at_every_write_there_and_back(world: World, tmp_path: Path) -> None:
    """Wherever it dies, it is taken up: brought to its end with nothing done twice, and taken back to every row as it
    was."""
    books = (
        MEND.replace('## 1. Read\n```toml\naction = "note"\n```\n\n', "")
        .replace("## 2", "## 1")
        .replace("## 3", "## 2")
    )
    at, went_back = 0, 0
    while True:
        before = failed_letters(world)
        playbooks, axe = desk(world, tmp_path / "books", books), Axe(at, "torn" if at % 2 else "before")
        run: Run | None = None
        with killed(axe):
            run = await playbooks.start("mend", {})
            await forward(run)
            await back(run)
        if run is not None:
            with contextlib.suppress(OSError):
                run.close()
        if not axe.fell:
            break
        status = next(iter(playbooks.runs()), None)
        state = status.state if status is not None else "open"
        if state != "rolled-back":
            run = await (playbooks.start("mend", {}) if state == "open" else playbooks.resume("mend"))
            if run.step is not None and run.status.steps[0].state != "undone":
                ends = await forward(run)
                assert run.status.state == "done" and world.images() == [], (at, ends)
                assert len(run.status.steps[0].plans) <= 2 or went_back, (at, "one cut off, one that did the rest")
            went_back += state == "done"
            ends = await back(run)
            assert run.status.state == "rolled-back", (at, ends)
            run.close()
        assert world.images() == before, at
        assert plans_done(world.actions(), "discard") == 0, at
        at += 1
    assert at > 20 and went_back
