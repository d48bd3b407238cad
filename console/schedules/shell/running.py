"""Commands: functions, programs, carriers around them, and scripts behind them. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from console.schedules import marks
from console.schedules.carriers import open_one, tool_of
from console.schedules.carrying import Carrier, name_of
from console.schedules.commands import SHELLS, words
from console.schedules.model import ScriptText
from console.schedules.paths import resolve, search
from console.schedules.programs import program_of
from console.schedules.shell.assignments import Assignments
from console.schedules.shell.expand import State
from console.schedules.shell.syntax import text_of
from console.schedules.shell.values import BUILTINS, DEEPEST, TURNS, Around, Leave, deeper, interpreter_of

if TYPE_CHECKING:
    from tree_sitter import Node

_CALLED = {".": "source", "[": "test"}
_WELL_KNOWN = words(
    "php python python2 python3 perl ruby node java go curl wget rsync tar find grep sed awk cat ls cp mv rm mkdir "
    "chown chmod ln touch date sleep logger mail sendmail psql pg_dump mysql mysqldump redis-cli docker podman "
    "kubectl systemctl service test sort head tail wc tr cut uniq xargs tee kill pkill killall pgrep pidof ps "
    "hostname id whoami gzip gunzip zip unzip git make npm npx yarn composer bundle rake celery rq gunicorn uvicorn "
    "supervisorctl supervisord pm2 forever screen tmux ssh scp sftp autossh openssl certbot logrotate seq basename "
    "dirname readlink"
)


class Spread(NamedTuple):
    """xargs and parallel: a command for each item."""

    command: tuple[str, ...]
    items: list[str]
    sign: str  # what is replaced by the item
    each: bool  # one command for one item
    whole_lines: bool
    parallel: bool


class Runner(Assignments):
    """Runs one command: nothing is executed, it is recorded."""

    def _on_command(self, node: Node, state: State, around: Around) -> bool | None:
        prefix: dict[str, str] = {}
        found: list[str] = []
        redirections: list[Node] = []
        for child in node.children:
            if child.type == "variable_assignment":
                name_node, value = child.child_by_field_name("name"), child.child_by_field_name("value")
                if name_node is not None:
                    prefix[text_of(name_node)] = self._expand.text(value, state) if value is not None else ""
            elif child.type == "command_name":
                found += self._expand.words(child.children[0], state) if child.children else [text_of(child)]
            elif child.type in ("file_redirect", "herestring_redirect", "heredoc_redirect"):
                redirections.append(child)
            elif child.is_named:
                found += self._expand.words(child, state)
        self._around = around
        if redirections:
            around = around._replace(outputs=around.outputs + self._redirections(redirections, state))
        if not found:
            for name, value_text in prefix.items():
                state.put(name, value_text)
            return None
        return self._run(tuple(found), prefix, state, around)

    def _run(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        name = tool_of(found)
        if name in state.functions and "/" not in found[0]:
            return self._call(name, found, prefix, state, around)
        if name in ("exec", "command", "builtin", "time", "!") and len(found) > 1:
            plain = found[1:]
            while plain and plain[0].startswith("-"):
                plain = plain[2:] if plain[0] == "-a" else plain[1:]
            if name != "exec" and plain and (plain[0] in state.functions or plain[0] in BUILTINS):
                return self._run(plain, prefix, state, around)
        does = _CALLED.get(name, name)
        builtin = getattr(self, f"_do_{does}", None) if does in BUILTINS or does in ("exec", "source") else None
        if builtin is not None:
            status: bool | None = builtin(found, prefix, state, around)
            return status
        if name in BUILTINS or (name == "command" and found[1:2] in (("-v",), ("-V",))):
            self._log(found, state, around)
            return True if name in (":", "true") else False if name == "false" else None
        return self._program(found, prefix, state, around)

    def _call(
        self, name: str, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around
    ) -> bool | None:
        if around.depth > DEEPEST * 2:
            self._notes.append(f"{name} calls itself: it is followed sixteen deep only")
            return None
        saved = state.arguments
        state.arguments = [saved[0] if saved else "", *found[1:]]
        for key, value in prefix.items():
            state.put(key, value, export=True)
        try:
            return self._statement(state.functions[name], state, deeper(around))
        except Leave as leave:
            if leave.how != "return":
                raise
            return None
        finally:
            state.arguments = saved

    def _program(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        """Anything that is no builtin: its carriers are taken off, texts and scripts are followed."""
        inner_state = state
        if prefix:
            inner_state = state.copy()
            for key, value in prefix.items():
                inner_state.put(key, value, export=True)
        command = found
        forced = False  # a shell was told to run the file, whatever is in it
        while (carrier := open_one(command)) is not None:
            around = self._carried(carrier, around)
            inner_state = self._as_user(carrier, inner_state)
            if carrier.login:
                self._profile(inner_state, around)
            if name_of(carrier.words) == "bash":
                self._enter("bash", inner_state, around)
            if carrier.text is not None:
                self._record(found, (), inner_state, around, followed="-c")
                inner_state.arguments = list(carrier.inner) if name_of(carrier.words) in SHELLS else []
                try:
                    return self._text(marks.spoken(carrier.text), inner_state, deeper(around))
                except Leave:
                    return None
            forced = name_of(carrier.words) in SHELLS
            command = carrier.inner
            if not command:
                self._record(found, (), inner_state, around)
                if name_of(carrier.words) == "flock":
                    state.locks.append(carrier.lock)
                return None
        if name_of(command) == "flock" and len(command) > 1 and command[-1].isdigit():
            path = state.descriptors.get(command[-1], "")
            if path:
                state.locks.append(path)
            self._record(found, (), inner_state, around)
            return None
        if not forced and "/" not in command[0] and command[0] in state.functions:
            return self._call(command[0], command, {}, inner_state, around)
        if (spread := xargs(command)) is not None:
            self._spread(spread, None, inner_state, around)
            return None
        return self._started(found, command, forced, inner_state, around)

    def _started(
        self, found: tuple[str, ...], command: tuple[str, ...], forced: bool, state: State, around: Around
    ) -> bool | None:
        script = self._script_of(command, forced, state, around)
        if script is not None and script.text and (forced or interpreter_of(script.text) in SHELLS | {""}):
            self._record(found, command, state, around, followed=script.path)
            return self._script(script, (script.path, *command[1:]), state, around)
        self._record(found, command, state, around, script=script or self._interpreted(command, state))
        return None

    def _interpreted(self, command: tuple[str, ...], state: State) -> ScriptText | None:
        """The script an interpreter of another language is given."""
        program = program_of(tuple(map(marks.concrete, command)))
        if not program.language or not program.path or program.path == command[0] or "." not in program.path:
            return None
        found = self._read(resolve(program.path, state.folder, state.home))
        return found if found is not None and not found.problem else None

    def _script_of(self, command: tuple[str, ...], forced: bool, state: State, around: Around) -> ScriptText | None:
        """The file a command is, when it is a text: a shell script to follow, or one of another language to look at."""
        path = marks.concrete(command[0])
        if marks.is_unknown(command[0]):
            self._notes.append(f"which program {path} is cannot be seen")
            return None
        if "/" in path:
            found = self._read(resolve(path, state.folder, state.home))
            if found is None and (forced or path.endswith((".sh", ".bash"))):
                self._notes.append(f"{resolve(path, state.folder, state.home)} is not there: what it does is not known")
        elif forced:
            found = self._read(resolve(path, state.folder, state.home))
            if found is None:
                self._notes.append(f"{resolve(path, state.folder, state.home)} is not there: what it does is not known")
        elif around.substitution or around.condition or path in _WELL_KNOWN:
            return None
        else:
            found = search(path, state.variables.get("PATH", "/usr/bin:/bin"), self._read)
        if found is None:
            return None
        if found.problem:
            if forced or path.endswith((".sh", ".bash")):
                self._notes.append(f"{found.path}: {found.problem}")
            return None
        if found.path in self._open:
            self._notes.append(f"{found.path} runs itself: it is followed once")
            return None
        if not forced and not found.text.startswith("#!") and not path.endswith((".sh", ".bash")):
            return found if "\n" in found.text and not path.rpartition("/")[2].count(".") else None
        return found

    def _spread_words(self, node: Node, state: State) -> Spread | None:
        name = node.child_by_field_name("name")
        if name is None or text_of(name).rpartition("/")[2] not in ("xargs", "parallel"):
            return None
        found = [
            word
            for child in node.named_children
            if child.type not in ("file_redirect", "variable_assignment")
            for word in self._expand.words(child.children[0] if child.type == "command_name" else child, state)
        ]
        return xargs(tuple(found))

    def _spread(self, spread: Spread, lines: list[str] | None, state: State, around: Around) -> None:
        """One command for each item that can be seen."""
        items = spread.items or (
            None
            if lines is None
            else [word for line in lines for word in ([line] if spread.whole_lines else line.split())]
        )
        if not spread.command:
            return
        around = around._replace(background=around.background or spread.parallel)
        if items is None:
            turn = tuple(word.replace(spread.sign, marks.unknown(spread.sign)) for word in spread.command)
            self._program(turn, {}, state, around._replace(times=None))
            return
        if not spread.each:
            self._program((*spread.command, *items), {}, state, around)
            return
        for item in items[:TURNS]:
            mark = marks.loop("item", item)
            if spread.sign and any(spread.sign in word for word in spread.command):
                turn = tuple(word.replace(spread.sign, mark) for word in spread.command)
            else:
                turn = (*spread.command, mark)
            self._program(turn, {}, state, around)

    def _carried(self, carrier: Carrier, around: Around) -> Around:
        outputs = around.outputs
        if carrier.output:
            outputs = (*outputs, ("1", ">>", carrier.output))
        return around._replace(
            carriers=(*around.carriers, carrier),
            user=carrier.user or around.user,
            group=carrier.group or ("" if carrier.user else around.group),
            login=around.login or carrier.login,
            background=around.background or carrier.detached,
            outputs=outputs,
        )

    def _as_user(self, carrier: Carrier, state: State) -> State:
        """The state within a carrier: a copy, because what it sets ends with it."""
        changed = state.copy()
        if carrier.user:
            name = marks.concrete(carrier.user)
            tool = name_of(carrier.words)
            if not changed.folder:
                changed.folder = "?" if name != (changed.variables.get("LOGNAME") or self._user) else ""
            changed.home = self._home_of(name)
            if carrier.login or tool in ("sudo", "doas"):
                kept = {key: changed.variables[key] for key in ("PATH", "TERM") if key in changed.variables}
                keeps_all = tool == "sudo" and any(
                    re.fullmatch(r"-\w*E\w*|--preserve-env", word) for word in carrier.words
                )
                if not keeps_all:
                    changed.exported = set(kept)
                    changed.own &= set(kept)
            changed.put_all({"HOME": changed.home, "LOGNAME": name, "USER": name})
        if carrier.folder is not None:
            folder = carrier.folder
            if folder == "~":
                user = marks.concrete(carrier.user)
                changed.folder = f"~{user}" if user else "~"
            else:
                changed.folder = resolve(folder, changed.folder, changed.home)
        for key, value in carrier.environment:
            changed.put(key, value, export=True)
        return changed


def xargs(command: tuple[str, ...]) -> Spread | None:
    name = tool_of(command)
    if name not in ("xargs", "parallel"):
        return None
    valued = words("-n -P -I -L -d -E -s -a --max-args --max-procs --replace --delimiter -j --jobs")
    sign, each, place = "{}", name == "parallel", 1
    replaced, parallel = False, name == "parallel"
    while place < len(command) and command[place].startswith("-"):
        word = command[place]
        key, value = word[:2], word[2:]
        if word in valued and place + 1 < len(command):
            value, place = command[place + 1], place + 1
        if key == "-I" or word.startswith("--replace"):
            sign, each, replaced = value or "{}", True, True
        elif key == "-P" or word.startswith("--max-procs"):
            parallel = value != "1"
        elif key in ("-n", "-L") and value == "1":
            each = True
        place += 1
    rest = command[place:]
    items: list[str] = []
    for mark in (":::", "::::"):
        if mark in rest:
            at = rest.index(mark)
            rest, items = rest[:at], list(rest[at + 1 :]) if mark == ":::" else []
            break
    if len(rest) == 1 and " " in rest[0]:
        rest = tuple(rest[0].split())
    return Spread(rest, items, sign, each, replaced or name == "parallel", parallel)
