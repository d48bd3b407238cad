"""The line, the script and the live processes as witnesses: what each says, and whether they agree. Pure."""

from __future__ import annotations

from console.schedules import marks
from console.schedules.hazards import Scene
from console.schedules.live import live_of
from console.schedules.model import Evidence
from console.schedules.roles import Built, Group, user_of
from console.text import duration


def agreed(scene: Scene, groups: list[Group], found: list[Built]) -> tuple[tuple[Evidence, ...], list[str], bool]:
    """Sentences of the three witnesses, questions where they do not agree, and whether they do."""
    said: list[Evidence] = []
    for start, each in zip(scene.starts, scene.verdicts, strict=True):
        where = start.command.around.where
        words_of = " ".join(map(marks.shown, start.argv))
        text = f"{words_of}: {each.why}" if not where else f"{where} runs {words_of}: {each.why}"
        said.append(Evidence(source="script" if where else "line", text=text))
    if not scene.starts:
        said.append(Evidence(source="line", text="nothing on the line goes on after it"))
    for each_built in found:
        role = each_built.role
        if role.guard:
            how = "" if role.guard_works is None else " (it works)" if role.guard_works else " (it does not work)"
            said.append(Evidence(source="line", text=f"guarded by {role.guard}{how}"))
    questions: list[str] = []
    sure = _heard_processes(scene, groups, found, said, questions)
    return tuple(dict.fromkeys(said)), questions, sure


def _heard_processes(
    scene: Scene, groups: list[Group], found: list[Built], said: list[Evidence], questions: list[str]
) -> bool:
    if scene.host.processes is None:
        said.append(Evidence(source="processes", text="the live processes were not looked at"))
        return True
    sure = True
    asked = [(group.first, each.role.instances, True) for group, each in zip(groups, found, strict=True)]
    if not groups:
        asked = [(start, 1, False) for start in scene.starts[:1]]
    for start, instances, launcher in asked:
        alive = live_of(start.argv, user_of(start, scene.entry), scene.host)
        text = " ".join(map(marks.shown, start.argv))
        if not alive:
            said.append(Evidence(source="processes", text=f"none of {text} is alive now"))
            continue
        oldest = max(process.age for process in alive)
        said.append(
            Evidence(source="processes", text=f"{len(alive)} of {text} alive, the oldest for {duration(oldest)}")
        )
        period = scene.rhythm.period
        if not launcher and period and oldest > period:
            sure = False
            questions.append(
                f"{text} has been running for {duration(oldest)} and starts every {duration(period)}: "
                "does it end by itself?"
            )
        if launcher and instances is not None and len(alive) != instances:
            questions.append(f"{instances} of {text} are meant and {len(alive)} are alive: how many should there be?")
    return sure
