"""A pid alone names nobody: after a reboot it may be somebody else's."""

from __future__ import annotations

import msgspec

from console.fleet.model import Holder, Ident, Worker
from console.playbook.checks.jobs import _is_its
from console.playbook.checks.lines import _came_from, _identity
from tests.fleet.facts import BOOT, process, unit

PARENT = process(4410)
CHILD = process(4500, ppid=4410)


def test_a_child_of_a_known_worker_is_no_tick() -> None:
    known = {f"{BOOT}:4410"}
    assert _came_from(CHILD, known)
    assert not _came_from(msgspec.structs.replace(CHILD, ppid=1), known)
    rebooted = msgspec.structs.replace(CHILD, ident=Ident("another-boot", 4500, 45000))
    assert not _came_from(rebooted, known)
    assert _identity(rebooted) != _identity(CHILD)


def test_a_finished_job_is_of_the_process_that_held_it() -> None:
    main = process(101)
    worker = Worker(
        key="mail-worker@1.service", role="mail", name="@1", state="running", unit=unit(), processes=(main,)
    )
    holder = Holder(host="wrk01", pid=101, start=main.ident.start, boot_id=BOOT, text="wrk01:101")
    assert _is_its(holder, worker)
    assert not _is_its(msgspec.structs.replace(holder, start=7), worker)
    assert not _is_its(msgspec.structs.replace(holder, pid=102), worker)
    assert _is_its(msgspec.structs.replace(holder, start=None), worker)  # the queue does not keep it
