"""Which of the commands of a line are workers: the rules, each with its reason. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from console.schedules import guards, marks, programs
from console.schedules.carriers import KEEP_ONE, KEEP_RUNNING, tool_of
from console.schedules.carrying import name_of
from console.schedules.commands import SHELLS
from console.schedules.shell.conditions import threshold
from console.schedules.shell.expand import COUNTERS, Gate
from console.schedules.shell.values import BUILTINS, Command, Reading
from console.schedules.starts import Start, start_of

DAY = 86_400.0
_FILE = "a pid or lock file"
_LOCK_FILES = frozenset({"lockfile", "lockfile-create", "dotlockfile"})
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


class Rhythm(NamedTuple):
    """How often a line runs."""

    at_boot: bool
    period: float  # seconds between two runs on average; 0: only at boot, or never

    @property
    def rare(self) -> bool:
        return not self.at_boot and (self.period >= DAY or not self.period)


class Verdict(NamedTuple):
    """Why a start is a worker, or is not."""

    worker: bool
    sure: bool
    why: str


def candidates(reading: Reading) -> list[Start]:
    """The commands that could be what the line is about, in order."""
    found = []
    for command in reading.commands:
        if not command.inner or command.followed or command.around.substitution:
            continue
        if command.around.condition and command.around.endless not in ("until", "while"):
            continue
        name, plain = tool_of(command.inner), command.plain
        if name in BUILTINS or (name in SHELLS and len(plain) == 1) or guards.lookup_of(plain) or is_wait(plain):
            continue
        judged = programs.judge(plain, command.script)
        helps = name in programs.HELPERS and not (judged.life == "long" and judged.known)
        if helps or (command.around.condition and judged.life == "short"):
            continue
        found.append(start_of(command))
    return found


def is_wait(plain: tuple[str, ...]) -> bool:
    """perl -e 'sleep …': a delay."""
    return re.match(r"(perl|python\d?|ruby)\s+-[ce]\s+.*\bsleep\b", " ".join(plain)) is not None


def verdict(start: Start, reading: Reading, rhythm: Rhythm) -> Verdict:
    """Whether a start is a worker that goes on, in this rhythm."""
    around, judged = start.command.around, start.judged
    if start.shape in ("container_bootstrap", "unit_start") and rhythm.rare:
        return Verdict(False, True, judged.why)
    if start.shape:
        return Verdict(True, start.sure, judged.why)
    bound = bounded(start)
    if bound and not rhythm.at_boot and rhythm.period and bound <= rhythm.period:
        return Verdict(False, True, f"it is ended after {bound:.0f} s, before the next run")
    if judged.life == "long" and judged.known:
        return Verdict(True, True, judged.why)
    if around.endless in ("while", "until") and (around.condition or judged.life != "short" or not judged.known):
        return Verdict(True, True, "a loop without an end starts it again whenever it ends")
    if judged.life == "short" and judged.known:
        again = around.endless == "while" and not around.piped and (rhythm.at_boot or around.background)
        return Verdict(again, True, "a loop without an end runs it again and again" if again else judged.why)
    return _by_shape(start, reading, rhythm)


def _by_shape(start: Start, reading: Reading, rhythm: Rhythm) -> Verdict:
    """What the line's form tells of a program that is not known."""
    around, judged = start.command.around, start.judged
    like_a_job = judged.life == "short"
    if any(name_of(carrier.words) in KEEP_RUNNING for carrier in around.carriers):
        return Verdict(True, True, "it is started again whenever it ends")
    if around.background and not waited(start.command, reading):
        if like_a_job:
            return Verdict(False, rhythm.rare, f"{judged.why}; the & leaves it to itself")
        several = around.times != 1 or any(marks.turns(word) for word in start.argv)
        if not rhythm.rare or several or judged.life == "long" or guarded(start.command, reading):
            return Verdict(True, judged.life == "long" or several or not rhythm.rare, "it is left in the background")
        return Verdict(False, False, "it is left in the background, but started once a day or less")
    if guarded(start.command, reading) and not rhythm.rare:
        file_only = all(looks(gate) in ("", _FILE) for gate in start.command.gates)
        sure = judged.life == "long" and not (file_only and not judged.known)
        return Verdict(not like_a_job, sure, f"it is started when it is not found; {judged.why}")
    if keeps_one(start) and not rhythm.rare and not rhythm.at_boot:
        return Verdict(judged.life == "long", judged.life == "long", f"a lock lets one run at a time; {judged.why}")
    if rhythm.at_boot:
        return Verdict(not like_a_job, judged.life == "long", f"it is started at boot; {judged.why}")
    return Verdict(False, judged.life != "long", f"it runs in the foreground, and {judged.why}")


def bounded(start: Start) -> float:
    """Seconds after which timeout, --max-time or --time-limit end it; 0: no such limit."""
    for carrier in start.carriers:
        if name_of(carrier.words) == "timeout":
            found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", marks.concrete(carrier.words[-1]))
            if found:
                return float(found[1]) * _UNITS[found[2]]
    text = " ".join(map(marks.concrete, start.argv))
    limit = re.search(r"--(?:max-time|time-limit|duration|max-runtime|runtime|timeout-after)[= ](\d+)\b", text)
    return float(limit[1]) if limit else 0.0


def waited(command: Command, reading: Reading) -> bool:
    """The script waits for what it left in the background."""
    seen = False
    for other in reading.commands:
        seen |= other is command
        if seen and other.words[:1] == ("wait",) and other.around.where == command.around.where:
            return True
    return False


def keeps_one(start: Start) -> bool:
    return (
        bool(start.command.locks)
        or any(name_of(carrier.words) in KEEP_ONE or name_of(carrier.words) == "flock" for carrier in start.carriers)
        or any(_takes_a_lock(command) for gate in start.command.gates for command in gate.commands)
    )


def _takes_a_lock(command: tuple[str, ...]) -> bool:
    """lockfile FILE, or mkdir of a folder that is called a lock."""
    name = name_of(command)
    return name in _LOCK_FILES or (name == "mkdir" and "lock" in marks.concrete(command[-1]).lower())


def guarded(command: Command, reading: Reading) -> bool:
    """It is started only when something is not found running."""
    return any(looks(gate) for gate in command.gates)


def looks(gate: Gate) -> str:
    """The tool with which a condition looks for what runs; "" for any other condition."""
    for command in gate.commands:
        plain = tuple(map(marks.concrete, command))
        name = name_of(command)
        text = " ".join(plain)
        if name in ("pgrep", "pidof"):
            return name
        if name == "ps" or re.search(r"\bps\b.*grep", text):
            return "ps|grep"
        if name in ("kill", "killall", "pkill") and "-0" in plain:
            return "kill -0"
        if name in ("test", "[", "[[", "((") and (found := COUNTERS.search(text)):
            return found[1]
        if name in ("test", "[", "[[") and re.search(r"\.(pid|lock)\b|/proc/(?!cpuinfo)", text):
            return _FILE
        if name in ("systemctl", "supervisorctl", "service") and re.search(r"is-active|status", text):
            return name
        if name in ("screen", "tmux") and re.search(r"-ls|-list|has-session|has\b|\bls\b", text):
            return name
        if name in ("lsof", "fuser", "ss", "netstat", "nc"):
            return name
        if "status" in plain[1:] and "/init.d/" in plain[0]:
            return "an init script"
        if name == "start-stop-daemon" and "--status" in plain:
            return name
    return ""


def aimed_at(start: Start) -> int:
    """The count a condition on the number of live processes aims at; 0: there is none."""
    return max((threshold(command) or 0 for gate in start.command.gates for command in gate.commands), default=0)


def hosts(start: Start) -> str:
    """The one host on which a condition lets it start; "" when every host does."""
    for gate in start.command.gates:
        asks = any(name_of(command) == "hostname" for command in gate.commands)
        for command in gate.commands:
            if asks and gate.wanted and name_of(command) == "grep" and "-v" not in command:
                found = re.fullmatch(r"\^?([\w.-]+?)\$?", marks.concrete(command[-1]))
                return found[1].replace("\\", "") if found else ""
            plain = [marks.concrete(word) for word in command if word not in ("[", "]", "[[", "]]", "test")]
            if len(plain) != 3 or "hostname" not in " ".join(plain).lower():
                continue
            left, sign, right = plain
            name = right if "hostname" in left.lower() else left
            if re.fullmatch(r"[\w.-]+", name) and (sign in ("=", "==")) is gate.wanted and sign in ("=", "==", "!="):
                return name
    return ""
