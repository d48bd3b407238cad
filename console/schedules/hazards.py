"""What is dangerous or broken about a line, what its form is called, and whether the witnesses agree. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from console.schedules import guards, marks, naming, programs
from console.schedules.carrying import name_of
from console.schedules.decide import Rhythm, Verdict, aimed_at, guarded, hosts, keeps_one, looks
from console.schedules.expression import parse
from console.schedules.model import Entry, Scheduled, ScriptText, Surroundings
from console.schedules.origins import origins_of
from console.schedules.remarks import WARNINGS
from console.schedules.roles import Built, Group, user_of
from console.schedules.shell.values import Command, Reading
from console.schedules.starts import Start, holds_a_port, start_of

Read = Callable[[str], ScriptText | None]
_RUN_ONE = frozenset({"run-one", "run-this-one", "run-one-constantly", "keep-one-running", "run-one-until-success"})


class Scene(NamedTuple):
    """Everything that is known of a line when it is judged."""

    entry: Entry
    reading: Reading
    rhythm: Rhythm
    read: Read
    host: Surroundings
    starts: list[Start]
    verdicts: list[Verdict]
    translate: bool = True  # unit text is wanted

    def scripts(self) -> list[Command]:
        return [command for command in self.reading.commands if command.followed not in ("", "-c")]

    def whole_script(self, workers: list[Start]) -> tuple[list[Start], bool]:
        """A pipeline that never ends, or a loop of several commands, is one worker: the script or line as a whole."""
        endless = [
            start for start in workers
            if _fed(start) or _one_of_many(start, self.starts) or _connected(start, workers)
        ]  # fmt: skip
        inner = [start for start in endless if not start.command.around.background or start.command.around.endless]
        if len(endless) != len(workers) or not endless:
            return workers, False
        looped = endless[0].command
        script = self._running(looped)
        while script is not None and script.around.endless == "while":  # the loop stands around the script
            looped, script = script, self._running(script)
        if script is not None and inner:
            found = start_of(script._replace(followed=""))
        elif script is None and not looped.around.depth:
            text = re.sub(r"\s*&\s*$", "", self.entry.command.rstrip("\r")).strip()
            shell = dict(self.entry.environment).get("SHELL", "/bin/sh")
            whole = endless[0].command.around._replace(outputs=(), times=1)
            found = start_of(endless[0].command._replace(folder="", around=whole))
            found.argv = found.run = (shell, "-c", text)
            named = endless[-1].argv if looped is endless[0].command else looped.inner
            found.name = naming.worker_name(named, "", user_of(endless[0], self.entry))
        else:
            return workers, False
        found.judged = endless[0].judged
        return [found], True

    def _running(self, command: Command) -> Command | None:
        """The script a command stands in; None for the line itself."""
        return next((each for each in self.scripts() if each.followed == command.around.where), None)

    def warnings(self, hazards: tuple[str, ...], scheduled: Scheduled | None) -> tuple[str, ...]:
        said = [WARNINGS[hazard] for hazard in hazards if hazard in WARNINGS]
        said += self.reading.notes
        if not self.reading.complete:
            said.append("a part of the shell text could not be read: what it does is not known")
        for start in self.starts:
            script = start.command.script
            if script is not None and programs.spawns(script):
                said.append(f"{script.path} is no shell script and may start processes itself: it is not followed")
        if scheduled is not None:
            said += scheduled.warnings
        return tuple(dict.fromkeys(said))


def _fed(start: Start) -> bool:
    """One after the other in a loop that reads what comes: what it leaves in the background is a worker of its own."""
    return start.command.around.endless == "read" and not start.command.around.background


def _connected(start: Start, workers: list[Start]) -> bool:
    """In one pipeline with another worker."""
    around = start.command.around
    shown = tuple(map(marks.shown, start.argv))
    return around.piped and any(
        other.command.around.piped and tuple(map(marks.shown, other.argv)) != shown for other in workers
    )


def _one_of_many(start: Start, starts: list[Start]) -> bool:
    """In a pipeline that feeds a loop, or in a loop without an end with other commands beside it."""
    around = start.command.around
    if around.piped and not around.background and any(other.command.around.endless == "read" for other in starts):
        return True
    if around.endless == "while" and start.judged.life == "short" and start.judged.known:
        return True  # it ends by itself: the loop around it is the worker
    if around.endless != "while" or around.condition:
        return False
    same = [
        other
        for other in starts
        if other.command.around.endless == "while" and other.command.around.where == around.where
    ]
    return len({other.argv for other in same}) > 1


# --- guards ---------------------------------------------------------------------------------------------------------


def guard_works(scene: Scene, group: Group) -> bool | None:
    """Whether what shall keep a second one from being started does; None: there is nothing, or it cannot be judged."""
    start = group.first
    if not guarded(start.command, scene.reading) and not _counted(scene.reading):
        return True if keeps_one(start) else None
    return not guard_fault(scene, group)


def _counted(reading: Reading) -> bool:
    return any(guards.lookup_of(command.plain) for command in reading.commands)


def guard_fault(scene: Scene, group: Group) -> str:
    """The hazard of a guard that does not work: it finds itself, never the worker, or asks for nobody's."""
    start = group.first
    owned = start.shape in ("unit_start", "container_bootstrap")  # what runs has other words than what starts it
    started = tuple(map(marks.concrete, start.argv))
    shell = dict(scene.entry.environment).get("SHELL", "/bin/sh")
    reasons: list[bool] = []
    for command in scene.reading.commands:
        plain = tuple(map(marks.concrete, command.inner or command.words))
        lookup = guards.lookup_of(plain)
        if lookup is None:
            continue
        if any("$USER" in word for word in plain) and "USER" not in dict(scene.entry.environment):
            return "USER_unset_in_cron"
        if not command.around.where and guards.finds_itself(lookup, f"{shell} -c {scene.entry.command}"):
            return "guard_matches_itself"
        reasons.append(not owned and bool(guards.misses(lookup, started)))
    if reasons and all(reasons):
        return "guard_pattern_mismatch"
    pattern = _grepped(scene.reading)
    if pattern and not reasons and not owned:
        try:
            if not re.search(pattern, " ".join(started)):
                return "guard_pattern_mismatch"
        except re.error:
            return ""
    return ""


def _grepped(reading: Reading) -> str:
    """What `ps | grep` looks for."""
    after_ps = False
    for command in reading.commands:
        name = name_of(command.inner)
        after_ps |= name == "ps"
        if after_ps and name in ("grep", "egrep", "fgrep"):
            plain = [marks.concrete(word) for word in command.inner[1:]]
            if any(re.fullmatch(r"-\w*v\w*", word) for word in plain):
                continue
            found = [word for word in plain if not word.startswith("-")]
            if found and not marks.is_unknown(command.inner[-1]):
                return re.escape(found[0]) if name == "fgrep" else found[0].replace("\\", "")
    return ""


# --- patterns -------------------------------------------------------------------------------------------------------


def launcher_pattern(scene: Scene, groups: list[Group], found: list[Built], whole: bool) -> str:
    """The name of the line's form."""
    start = groups[0].first
    around = start.command.around
    names = {name_of(carrier.words) for carrier in around.carriers}
    fault = guard_fault(scene, groups[0])
    if fault in ("guard_pattern_mismatch", "guard_matches_itself"):
        return "broken_guard"
    if len(
        {(other.source.kind, other.source.path) for other in elsewhere(scene, groups)}
        - {(scene.entry.source.kind, scene.entry.source.path)}
    ):
        return "multiple_origins"
    if start.shape not in ("", "self_daemonizing"):
        return start.shape
    if recycles(scene):
        return "recycler"
    if hosts(start):
        return "host_guard"
    if scene.entry.source.kind == "anacron" or scene.entry.label:
        return "anacron_launcher"
    looped = any(word for word in start.argv if marks.turns(word)) or len(groups[0].starts) > 1
    tool = next((looks(gate) for gate in start.command.gates if looks(gate)), "")
    checks: tuple[tuple[object, str], ...] = (
        (whole, "pipeline_loop"),
        ("screen" in names, "screen_detached"),
        ("tmux" in names, "tmux_detached"),
        ("start-stop-daemon" in names, "start_stop_daemon"),
        (names & _RUN_ONE, "run_one_guard"),
        (around.endless in ("while", "until"), "shell_respawner"),
        (aimed_at(start) or (_counted(scene.reading) and looped and not tool), "count_and_fill"),
        (keeps_one(start), "flock_guard"),
        (tool == "ps|grep" or tool == "ps", "ps_grep_guard"),
        (tool in ("pgrep", "pidof") and not start.command.environment.get("VIRTUAL_ENV"), f"{tool}_guard"),
        (
            tool and tool not in ("pgrep", "pidof"),
            "pidfile_guard" if tool in ("kill -0", "a pid or lock file") else "watchdog",
        ),
        (start.command.environment.get("VIRTUAL_ENV") and looped, "venv_activate_loop"),
        (around.login and around.user and looped, "su_login_loop"),
        (around.login and around.user, "su_login"),
        (around.login, "login_shell_wrapper"),
        (start.shape, "self_daemonizing"),
        (scene.rhythm.at_boot and around.background and looped, "reboot_loop"),
        (scene.rhythm.at_boot and around.background, "reboot_nohup"),
        (scene.rhythm.at_boot, "reboot_foreground"),
        (looped, "background_loop"),
        (around.background, "backgrounded"),
    )
    return next((name for holds, name in checks if holds), "unguarded")


def recycles(scene: Scene) -> bool:
    """Again and again it kills what runs before it starts it anew."""
    names = {name_of(command.inner) for command in scene.reading.commands}
    stops = any("stop" in map(marks.concrete, command.inner[1:3]) for command in scene.reading.commands)
    return (
        not scene.rhythm.at_boot
        and bool(names & {"pkill", "killall", "kill"} or stops)
        and not any(looks(gate) for start in scene.starts for gate in start.command.gates)
    )


def elsewhere(scene: Scene, groups: list[Group]) -> list[Entry]:
    """Other entries that start the same script or the same worker."""
    if len(scene.host.entries) < 2:
        return []
    index = origins_of(scene.host.entries, scene.read)
    found: list[Entry] = []
    for command in scene.scripts():
        if not command.around.where:
            found += index.of(command.followed, tuple(map(marks.concrete, command.inner[1:])), scene.entry)
    for group in groups:
        start = group.first
        plain = tuple(map(marks.concrete, start.run))
        folder = start.folder or start.command.folder
        program = programs.program_of(plain)
        path = program.path or plain[0]
        if not path.startswith("/"):
            path = f"{folder.rstrip('/')}/{path.removeprefix('./')}"
        found += index.of(path, program.arguments if program.path else plain[1:], scene.entry)
    return list({(entry.source.path, entry.line): entry for entry in found}.values())


def run_folders(reading: Reading) -> tuple[str, ...]:
    """Folders below /run that the line makes: RuntimeDirectory does."""
    found = []
    for command in reading.commands:
        if name_of(command.inner) in ("mkdir", "install"):
            for word in command.inner[1:]:
                place = re.fullmatch(r"/(?:var/)?run/([\w.-]+(?:/[\w.-]+)*)/?", marks.concrete(word))
                if place:
                    found.append(place[1])
    return tuple(dict.fromkeys(found))


# --- hazards --------------------------------------------------------------------------------------------------------


def hazards_of(scene: Scene, groups: list[Group], found: list[Built], whole: bool) -> tuple[str, ...]:
    """The codes of what is dangerous or broken, each once."""
    hazards: list[str] = []
    entry = scene.entry
    for group, each in zip(groups, found, strict=True):
        start = group.first
        around = start.command.around
        hazards += start.hazards
        if holds_a_port(start.argv):
            hazards.append("fixed_port_blocks_parallel_canary")
        if any(lock.startswith(("/tmp/", "/var/tmp/")) for lock in each.role.locks):
            hazards.append("lock_file_in_tmp")
        if re.search(r"/current(/|$)", each.role.workdir or ""):
            hazards.append("release_symlink_cwd")
        fault = guard_fault(scene, group)
        if fault:
            hazards.append(fault)
        unguarded = (
            each.role.guard_works is not True
            and fault != "guard_matches_itself"
            and not start.shape
            and not keeps_one(start)
        )
        if (
            (unguarded or fault in ("USER_unset_in_cron", "guard_pattern_mismatch"))
            and not scene.rhythm.at_boot
            and around.endless == ""
        ):
            hazards.append("recycler" if recycles(scene) else "pile_up")
        if start.argv and "/" in start.argv[0] and not start.argv[0].startswith(("/", "\ue000", "\ue003")):
            hazards.append("relative_executable")
        if (
            scene.rhythm.at_boot
            and not around.endless
            and start.shape not in ("supervisor_bootstrap", "container_bootstrap")
        ):
            hazards.append("no_restart_after_crash")
        if each.truncated:
            hazards.append("truncating_redirect")
        if user_of(start, entry) != entry.user:
            hazards.append("user_differs_from_crontab_user")
        if around.login:
            hazards.append("login_shell_environment")
        if around.login and around.user:
            hazards.append("orphans_in_session_scope")
        if any(carrier.terminal for carrier in around.carriers):
            hazards.append("pty_expected")
        if any(
            name_of(carrier.words) == "start-stop-daemon" for carrier in around.carriers
        ) or "pid or lock" in " ".join(map(looks, start.command.gates)):
            hazards.append("stale_pidfile")
        if around.endless in ("while", "until"):
            hazards.append("parent_respawns_killed_child")
        if hosts(start):
            hazards.append("fleet_singleton")
    if whole:
        hazards.append("multi_process_worker")
    hazards += of_the_line(entry)
    if any(
        command.words[:1] in ((".",), ("source",)) and not marks.concrete(command.words[-1]).endswith("activate")
        for command in scene.reading.commands
    ):
        hazards.append("shell_env_file")
    others = elsewhere(scene, groups)
    if any(other.source.path != entry.source.path for other in others):
        hazards.append("multiple_origins")
    if any(other.source.path == entry.source.path for other in others):
        hazards.append("two_lines_one_role")
    if entry.source.kind == "anacron":
        hazards.append("anacron_format")
    if dash_braces(scene):
        hazards.append("bashism_in_sh")
    return tuple(dict.fromkeys(hazards))


def of_the_line(entry: Entry) -> list[str]:
    """What is to be known of how the line itself is written."""
    found = ["percent_escaping"] if b"\\%" in entry.raw else []
    if entry.command.endswith("\r"):
        found.append("crlf_line_ends")
    return [*found, *(["never_fires"] if never_fires(entry.expression) else [])]


def never_fires(expression: str) -> bool:
    """fri-sun, 50-10, 30 February: cron takes it and never runs it."""
    try:
        parsed = parse(expression)
    except ValueError:
        return False
    return not parsed.at_boot and not parsed.fires


def dash_braces(scene: Scene) -> bool:
    """{1..4}, [[ or (( in a text that /bin/sh runs: where that is dash they are not understood."""
    shell = dict(scene.entry.environment).get("SHELL", "/bin/sh").rpartition("/")[2]
    if shell in ("sh", "dash") and re.search(r"\bin \{\w+\.\.\w+\}|\[\[ |\bfor \(\(", scene.entry.command):
        return not re.search(r"\b(bash|zsh|ksh)\s+-\w*c\b", scene.entry.command)
    return False
