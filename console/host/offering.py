"""What is tried on the units of an entry before they are offered: systemd reads them, their timers fire with cron."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from console.host import calendar
from console.host.children import output_of
from console.host.inventory import Inventories, Named
from console.host.surroundings import differences
from console.schedules.expression import parse
from console.schedules.inventory import Listed, Translated
from console.schedules.model import Dialect, Explained
from console.schedules.timing import zone_of

_VERIFY_SECONDS = 20.0
_SHOWN = 6  # complaints, and instants, that are told
_NOT_HERE = ("is not executable: No such file or directory", "Failed to resolve executable")


async def translated(
    inventories: Inventories, names: tuple[str, ...], prove: bool, here: bool
) -> tuple[Translated, ...]:
    """These entries with unit text; with `prove` it is tried. `here`: the programs of its units should be on this host.

    HostError: there is no entry of one of these names.
    """
    named = await inventories.named(names)
    if not prove:
        return tuple(Translated(listed=each) for each in named.entries)
    return tuple([await _offered(each, named, here) for each in named.entries])


async def _offered(listed: Listed, named: Named, here: bool) -> Translated:
    held: list[str] = []
    failed: list[str] = []
    if listed.explained.units:
        await _verify(listed.explained, here, held, failed)
    if any(name.endswith(".timer") for name, _ in listed.explained.units):
        await _compare(listed, named.dialect, held, failed)
    lost = differences(listed, named.accounts) if here else ()
    return Translated(listed=listed, held=tuple(held), failed=tuple(failed), lost=lost)


async def _verify(explained: Explained, here: bool, held: list[str], failed: list[str]) -> None:
    """The units with their drop-ins; files that they name are elsewhere."""
    names = sorted(name for name, _ in explained.units)
    drop_ins = [(path, text) for path, text, _ in explained.extras if not path.startswith("/")]
    with tempfile.TemporaryDirectory(prefix="worktop-verify-") as scratch:
        for name, text in (*explained.units, *drop_ins):
            (Path(scratch) / name).parent.mkdir(exist_ok=True)
            (Path(scratch) / name).write_text(text, encoding="utf-8")
        paths = [f"{scratch}/{name}" for name in names]
        said = await output_of(["systemd-analyze", "--man=no", "verify", *paths], _VERIFY_SECONDS, 1024 * 1024)
        lines = [line.strip().replace(f"{scratch}/", "") for line in said.err.decode("utf-8", "replace").splitlines()]
    if said.status is None:
        failed.append(f"systemd-analyze verify could not be asked: {lines[0] if lines else 'it is not there'}")
        return
    stems = tuple(name.rpartition(".")[0] for name in names)
    about = [line for line in lines if line.startswith(stems)] or ([] if said.status == 0 else lines)
    absent = [line for line in about if line.endswith(_NOT_HERE)]
    wrong = [line for line in about if line not in absent]
    failed += [f"systemd-analyze verify: {line}" for line in wrong[:_SHOWN]]
    if absent and here:
        failed += [f"systemd-analyze verify: {line}" for line in absent[:_SHOWN]]
    if not wrong:
        but = " (its programs are not on this host, and could not be looked for)" if absent and not here else ""
        held.append(f"systemd-analyze verify accepts {', '.join(names)}{but}")


async def _compare(listed: Listed, dialect: Dialect, held: list[str], failed: list[str]) -> None:
    scheduled = listed.explained.scheduled
    if scheduled is None or not scheduled.on_calendar:
        return
    asked = calendar.Translated(parse(scheduled.expression, dialect), scheduled.on_calendar)
    (proof,) = await calendar.prove([asked], zone_of(scheduled.zone), time.time())
    if proof.problem:
        failed.append(f"the timer could not be compared with cron: {proof.problem}")
    failed += [each.text for each in proof.differences[:_SHOWN]]
    if len(proof.differences) > _SHOWN:
        failed.append(f"{len(proof.differences) - _SHOWN} more differences")
    if proof.equal:
        changes = f", and around the next {len(proof.changes)} changes of the clock" if proof.changes else ""
        held.append(f"the timer fires when cron does: the next {proof.compared} times{changes}")
