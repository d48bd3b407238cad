"""Texts and scripts that are followed, and the record of what they run. Pure."""

from __future__ import annotations

import abc
import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from console.schedules import marks
from console.schedules.carriers import open_one
from console.schedules.carrying import Carrier
from console.schedules.commands import SHELLS
from console.schedules.model import ScriptText
from console.schedules.paths import resolve
from console.schedules.shell.expand import Expander, Gate, State
from console.schedules.shell.printed import Printer
from console.schedules.shell.syntax import LONGEST, parse, statements, text_of
from console.schedules.shell.values import DEEPEST, STEPS, Around, Command, Leave, Read, Reading, deeper, interpreter_of

if TYPE_CHECKING:
    from tree_sitter import Node


class Follower(abc.ABC):
    """Follows texts; what the statements in them do is told by the classes built on it."""

    def __init__(self, read: Read, user: str, home_of: Callable[[str], str]) -> None:
        self._read = read
        self._user = user
        self._home_of = home_of
        self._commands: list[Command] = []
        self._notes: list[str] = []
        self._complete = True
        self._steps = 0
        self._open: list[str] = []  # scripts that are being followed
        self._around = Around()
        self._expand = Expander(self._substitute)
        self._printer = Printer(self._expand, read)

    def line(
        self, text: str, environment: Mapping[str, str], home: str, stdin: str, arguments: Sequence[str]
    ) -> Reading:
        shell = environment.get("SHELL", "/bin/sh")
        own = {name for name in environment if name not in ("HOME", "LOGNAME", "SHELL", "PATH", "MAILTO", "USER")}
        state = State(
            dict(environment), set(environment), home=home, own=own, arguments=list(arguments),
            dash=shell.rpartition("/")[2] in ("sh", "dash"),
        )  # fmt: skip
        self._enter(shell, state, Around())
        try:
            self._text(marks.unmarked(text), state, Around(), stdin)
        except Leave:
            pass
        except RecursionError:
            self._complete = False
            self._notes.append("the text is nested too deeply to be followed")
        return Reading(tuple(self._commands), tuple(dict.fromkeys(self._notes)), self._complete)

    def _text(self, text: str, state: State, around: Around, stdin: str = "") -> bool | None:
        if around.depth > DEEPEST:
            self._notes.append("shells within shells are followed eight deep only")
            return None
        root = parse(text)
        if root.has_error:
            self._complete = False
        if stdin and (status := self._fed(text, stdin, state, around)) is not None:
            return status
        return self._block(root, state, around)

    def _fed(self, text: str, stdin: str, state: State, around: Around) -> bool | None:
        """A shell that gets its commands on stdin: `/bin/sh%worker &`, `su - app%worker &`."""
        found = text.split()
        if found and (found[-1].rpartition("/")[2] in SHELLS or found[0] in ("su", "sudo")) and "-c" not in found:
            carrier = open_one(tuple(found))
            self._block(parse(text), state, around)
            inner = self._carried(carrier, around) if carrier is not None else around
            return self._text(stdin, self._as_user(carrier, state) if carrier else state, deeper(inner)) or True
        return None

    def _script(self, found: ScriptText, arguments: tuple[str, ...], state: State, around: Around) -> bool | None:
        path = found.path
        if path in self._open:
            self._notes.append(f"{path} runs itself: it is followed once")
            return None
        self._open.append(path)
        interpreter = interpreter_of(found.text)
        inner = State(
            state.environment(), set(state.exported), arguments=list(arguments), folder=state.folder, home=state.home,
            dash=interpreter in ("sh", "dash", ""), own=set(state.own), limits=list(state.limits),
            gates=list(state.gates), descriptors=dict(state.descriptors), locks=list(state.locks),
            outputs=state.outputs,
        )  # fmt: skip
        if interpreter == "bash":
            self._enter(interpreter, inner, around)
        try:
            return self._text(marks.unmarked(found.text), inner, deeper(around)._replace(where=path, outputs=()))
        except Leave:
            return None
        finally:
            self._open.pop()

    def _source(self, path: str, arguments: tuple[str, ...], state: State, around: Around) -> bool | None:
        """`. FILE`: in the same shell."""
        if path.endswith("/bin/activate"):
            self._activate(path, state)
            return True
        found = self._file(path)
        if found is None or found.problem or path in self._open:
            return None
        saved = state.arguments
        if len(arguments) > 1:
            state.arguments = [saved[0] if saved else path, *arguments[1:]]
        self._open.append(path)
        try:
            return self._text(marks.unmarked(found.text), state, deeper(around)._replace(where=path))
        except Leave as leave:
            if leave.how == "exit":
                raise
            return None
        finally:
            self._open.pop()
            state.arguments = saved

    @staticmethod
    def _activate(path: str, state: State) -> None:
        """What venv/bin/activate does, whether or not it can be read."""
        folder = path.removesuffix("/bin/activate")
        before = state.variables.get("PATH", "/usr/bin:/bin")
        state.put("VIRTUAL_ENV", folder, export=True)
        state.put("PATH", f"{folder}/bin:{before}", export=True)

    def _file(self, path: str) -> ScriptText | None:
        """A file a script needs; what is wrong with it becomes a note."""
        found = self._read(path)
        if found is None:
            self._notes.append(f"{path} is not there")
        elif found.problem:
            self._notes.append(f"{path}: {found.problem}")
        elif len(found.text) > LONGEST:
            self._notes.append(f"{path} is longer than {LONGEST // 1024} KiB: only its beginning is read")
        return found

    def _enter(self, shell: str, state: State, around: Around) -> None:
        """BASH_ENV, which a bash that runs a text or a script reads first."""
        path = marks.concrete(state.variables.get("BASH_ENV", ""))
        if path and shell.rpartition("/")[2] == "bash" and path not in self._open:
            self._source(resolve(path, "", state.home), (), state, around)

    def _profile(self, state: State, around: Around) -> None:
        """What a login shell reads before it does anything; files that are absent are passed over."""
        home = state.home
        own = next(
            (path for path in (f"{home}/.bash_profile", f"{home}/.bash_login", f"{home}/.profile") if self._read(path)),
            "",
        )
        for path in ("/etc/profile", own):
            if path and self._read(path) is not None and path not in self._open:
                try:
                    self._source(path, (), state, around._replace(uncertain=True, condition=True))
                except Leave:
                    continue

    def _log(self, found: tuple[str, ...], state: State, around: Around) -> None:
        """Record what starts nothing: conditions and guards are read from it."""
        self._commands.append(Command(found, (), around, state.folder, {}, gates=around.gates + tuple(state.gates)))

    def _record(
        self,
        found: tuple[str, ...],
        inner: tuple[str, ...],
        state: State,
        around: Around,
        script: ScriptText | None = None,
        followed: str = "",
    ) -> None:
        if state.outputs:
            around = around._replace(outputs=state.outputs + around.outputs)
        self._commands.append(
            Command(
                found,
                inner,
                around,
                state.folder,
                state.environment(),
                tuple(state.locks),
                tuple(state.limits),
                around.gates + tuple(state.gates),
                script,
                followed,
                tuple(map(marks.concrete, inner)),
            )
        )

    def _block(self, node: Node, state: State, around: Around) -> bool | None:
        status: bool | None = True
        for child, background in statements(node):
            if background:
                self._apart(child, state, around._replace(background=True))
                status = True
            else:
                status = self._statement(child, state, around)
        return status

    def _apart(self, node: Node, state: State, around: Around) -> bool | None:
        """In a shell of its own: nothing it sets is seen afterwards."""
        try:
            return self._statement(node, state.copy(), around)
        except Leave:
            return None

    def _statement(self, node: Node, state: State, around: Around) -> bool | None:
        self._steps += 1
        self._around = around
        if self._steps > STEPS:
            if self._complete:
                self._notes.append("it is too long to be followed to its end")
            self._complete = False
            raise Leave("exit")
        handler = getattr(self, f"_on_{node.type}", None)
        if handler is not None:
            status: bool | None = handler(node, state, around)
            return status
        return self._block(node, state, around) if node.named_child_count else None

    def _gated(self, around: Around, since: int, wanted: bool) -> Around:
        """Behind the outcome of the commands that were recorded since."""
        commands = tuple(command.words for command in self._commands[since:])
        return around._replace(gates=(*around.gates, Gate(commands, wanted, around.where)), uncertain=True)

    def _substitute(self, node: Node, state: State) -> str:
        """What $(…) prints, as far as it can be told; what it runs is recorded."""
        around = self._around
        inner = state.copy()
        with contextlib.suppress(Leave):
            self._block(node, inner, around._replace(substitution=True, background=False))
        self._around = around
        printed = self._printer.of_block(node, state)
        return marks.unknown(text_of(node)) if printed is None else printed.rstrip("\n")

    @abc.abstractmethod
    def _carried(self, carrier: Carrier, around: Around) -> Around:
        """Around a command within this carrier."""

    @abc.abstractmethod
    def _as_user(self, carrier: Carrier, state: State) -> State:
        """The state of a command within this carrier."""
