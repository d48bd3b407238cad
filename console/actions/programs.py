"""What stands above a process that no unit runs: another supervisor, or a shell that would start it again."""

from __future__ import annotations

from typing import NamedTuple

from console.fleet.model import Ident, Process
from console.fleet.plan import Step
from console.host.client import HostClient

_WRAPPERS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "flock", "timeout", "nohup", "run-one"})
_TIMEOUT = 130.0


class Parent(NamedTuple):
    ident: Ident
    name: str


def other_supervisor(process: Process) -> Step | None:
    """The step that stops it through the command of the supervisor it has; None: it has none with such a command."""
    kind = process.owner.kind
    if kind not in ("supervisord", "pm2"):
        return None
    command = "supervisorctl stop" if kind == "supervisord" else "pm2 stop"
    return Step(
        kind="program",
        title=f"stop pid {process.ident.pid} through {kind}",
        text=f"{command}, with the name under which {kind} lists pid {process.ident.pid}: it would start it again",
        ident=process.ident,
        verb=kind,
        timeout=_TIMEOUT,
    )


async def wrappers(host: HostClient, process: Process) -> tuple[Parent, ...]:
    """Shells and the like directly above it, outermost first: a loop in one of them would start it again. None of a
    login, and none that is another worker's."""
    if process.owner.kind not in ("cron", "unknown"):
        return ()
    above = []
    for ancestor in process.ancestors:
        if ancestor.name not in _WRAPPERS or ancestor.pid <= 1:
            break
        above.append(ancestor)
    hello = host.facts.hello
    if not above or hello is None:
        return ()
    known = [state.pid for state in host.facts.holders.value or ()]
    await host.look_up([*known, *(ancestor.pid for ancestor in above)])
    starts = {state.pid: state.start for state in host.facts.holders.value or ()}
    return tuple(
        Parent(Ident(hello.boot_id, ancestor.pid, start), ancestor.name)
        for ancestor in reversed(above)
        if (start := starts.get(ancestor.pid)) is not None
    )
