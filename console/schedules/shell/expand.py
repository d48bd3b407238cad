"""The words of a command: quotes opened, variables put in, what is unknown marked. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from console.schedules import marks
from console.schedules.shell.quoting import ansi_c, tilde, trimmed, unescape
from console.schedules.shell.syntax import between, braces, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

# Their value is the same for a unit of that user, or is only of use in the place: they never stay references.
_PLAIN = frozenset({"HOME", "LOGNAME", "USER", "PATH", "SHELL", "PWD", "OLDPWD", "UID", "HOSTNAME"})
_CRONS_PATH = "/usr/bin:/bin"
COUNTERS = re.compile(r"\b(pgrep|pidof|ps|pstree|jobs|supervisorctl|lsof|ss|netstat)\b")


class Gate(NamedTuple):
    """A condition in force: what was run to decide, and the outcome that leads on."""

    commands: tuple[tuple[str, ...], ...]
    wanted: bool
    where: str = ""

    def inverted(self) -> Gate:
        return self._replace(wanted=not self.wanted)


class State(msgspec.Struct):
    """One shell's variables, folder and open descriptors."""

    variables: dict[str, str]
    exported: set[str]
    arrays: dict[str, list[str]] = {}
    functions: dict[str, Node] = {}
    arguments: list[str] = []  # $0 first
    folder: str = ""  # "": where cron starts it
    home: str = ""
    export_all: bool = False  # set -a
    dash: bool = False  # the shell is /bin/sh: no arrays, no braces
    own: set[str] = set()  # set for the worker by the crontab, a script or an environment file
    limits: list[str] = []  # ulimit … as written
    gates: list[Gate] = []  # what must hold for the rest: it would have left otherwise
    descriptors: dict[str, str] = {}  # 9>FILE
    locks: list[str] = []  # files locked through a descriptor
    outputs: tuple[tuple[str, str, str], ...] = ()  # of exec: descriptor, operator, target

    def copy(self) -> State:
        return State(
            dict(self.variables), set(self.exported), dict(self.arrays), dict(self.functions), list(self.arguments),
            self.folder, self.home, self.export_all, self.dash, set(self.own), list(self.limits), list(self.gates),
            dict(self.descriptors), list(self.locks), self.outputs,
        )  # fmt: skip

    def put(self, name: str, value: str, *, export: bool = False) -> None:
        self.variables[name] = value
        if export or self.export_all:
            self.exported.add(name)
            self.own.add(name)

    def put_all(self, values: dict[str, str]) -> None:
        """What the host sets for a user."""
        self.variables.update(values)
        self.exported.update(values)

    def environment(self) -> dict[str, str]:
        return {name: self.variables[name] for name in self.variables if name in self.exported}


Substitute = Callable[["Node", "State"], str]  # what $(…) prints, marked; it records what it runs


class Expander:
    def __init__(self, substitute: Substitute) -> None:
        self._substitute = substitute

    def words(self, node: Node, state: State) -> list[str]:
        """The fields one word becomes: none, one or several."""
        kind = node.type
        if kind in ("word", "number"):
            plain = text_of(node)
            if "\\" not in plain and "{" not in plain and plain[:1] != "~" and "*" not in plain:
                return [plain]
        raw = text_of(node)
        if kind in ("word", "concatenation", "brace_expression") and "{" in raw and not re.search(r"['\"`$\\]", raw):
            several = braces(raw)
            if len(several) > 1:
                return several
        fields = _Fields()
        self._into(node, state, fields, quoted=False)
        found = fields.done()
        if found and raw.startswith("~"):
            found[0] = tilde(found[0], state.home)
        return found

    def text(self, node: Node, state: State) -> str:
        """A word as one text: the value of an assignment, a redirection's target."""
        fields = _Fields()
        self._into(node, state, fields, quoted=True)
        value = "".join(fields.done())
        return tilde(value, state.home) if text_of(node).startswith("~") else value

    def _into(self, node: Node, state: State, fields: _Fields, *, quoted: bool) -> None:
        kind = node.type
        if kind == "raw_string":
            fields.literal(text_of(node)[1:-1])
        elif kind == "ansi_c_string":
            fields.literal(ansi_c(text_of(node)[2:-1]))
        elif kind in ("string", "translated_string"):
            self._string(node, state, fields)
        elif kind == "simple_expansion":
            self._variable(text_of(node)[1:], text_of(node), state, fields, quoted=quoted)
        elif kind == "expansion":
            self._expansion(node, state, fields, quoted=quoted)
        elif kind == "command_substitution":
            fields.split(self._substitute(node, state), quoted=quoted)
        elif kind == "arithmetic_expansion":
            number = self.number(node.named_children[0], state) if node.named_child_count == 1 else None
            fields.literal(marks.unknown(text_of(node)) if number is None else str(number))
        elif kind == "process_substitution":
            fields.literal(marks.unknown(text_of(node)))
        elif node.child_count and kind != "word":
            end = node.start_byte
            for child in node.children:
                if child.start_byte > end:  # bytes the grammar has no node for
                    fields.literal(between(node, end, child.start_byte))
                self._into(child, state, fields, quoted=quoted)
                end = child.end_byte
        else:
            fields.literal(unescape(text_of(node)))

    def _string(self, node: Node, state: State, fields: _Fields) -> None:
        """Within double quotes: bytes between the nodes count, blanks are kept."""
        fields.literal("")
        end = node.start_byte + 1
        children = node.children[1:]
        for child in children:
            if child.start_byte > end:
                fields.literal(unescape(between(node, end, child.start_byte), quoted=True))
            if child.type == "string_content":
                fields.literal(unescape(text_of(child), quoted=True))
            elif child.type != '"':
                self._into(child, state, fields, quoted=True)
            end = child.end_byte

    def _variable(self, name: str, written: str, state: State, fields: _Fields, *, quoted: bool) -> None:
        if name in ("@", "*"):
            if quoted and name == "*":
                fields.literal(" ".join(state.arguments[1:]))
            else:
                fields.many(state.arguments[1:], quoted=quoted)
            return
        value = self.value(name, state)
        if value is None:
            fields.literal(marks.unknown(written))
        else:
            fields.split(value, quoted=quoted)

    def value(self, name: str, state: State) -> str | None:
        """A variable's value, a reference to it where it belongs to the environment; None: not known."""
        if name.isdigit():
            number = int(name)
            if number < len(state.arguments):
                return state.arguments[number]
            return "" if state.arguments else None
        if name == "#":
            return str(len(state.arguments) - 1) if state.arguments else None
        if name in ("$", "!", "?", "-", "_"):
            return None
        if name == "PWD":
            return state.folder or state.home
        if name in state.arrays:
            return state.arrays[name][0] if state.arrays[name] else ""
        value = state.variables.get(name, _CRONS_PATH if name == "PATH" else None)
        if value is not None and value and name in state.own and name not in _PLAIN:
            return marks.reference(name, value)
        return value

    def _expansion(self, node: Node, state: State, fields: _Fields, *, quoted: bool) -> None:
        """${NAME}, ${NAME:-x}, ${NAME%x}, ${NAME##x}, ${NAME/x/y}, ${#NAME}, ${ARRAY[@]}."""
        written = text_of(node)
        body = written[2:-1]
        found = re.match(r"(#|!)?([A-Za-z_]\w*|\d+|[@*#?$!-])(\[[^\]]*\])?", body)
        if not found:
            fields.literal(marks.unknown(written))
            return
        prefix, name, index = found[1] or "", found[2], found[3] or ""
        rest = body[found.end() :]
        several = state.arrays.get(name) if index in ("[@]", "[*]") else None
        if index in ("[@]", "[*]") and several is None and name in state.variables:
            several = [state.variables[name]]
        if name in ("@", "*"):
            several = state.arguments[1:]
        keys = state.arrays.get(f"!{name}") if index in ("[@]", "[*]") else None
        if keys is not None:
            values = [state.variables.get(f"{name}[{key}]", "") for key in keys]
            fields.many(keys if prefix == "!" else [str(len(keys))] if prefix == "#" else values, quoted=quoted)
            return
        if several is not None:
            if prefix == "#":
                fields.literal(str(len(several)))
            elif prefix == "!":
                fields.many([str(number) for number in range(len(several))], quoted=True)
            else:
                fields.many(several, quoted=quoted)
            return
        value = self._indexed(name, index, state) if index else self.value(name, state)
        if prefix == "#":
            fields.literal(marks.unknown(written) if value is None else str(len(marks.concrete(value))))
            return
        if prefix == "!":
            value = self.value(marks.concrete(value), state) if value else None
        changed = self._changed(value, rest, node, state, name) if rest else value
        if changed is None:
            fields.literal(marks.unknown(written))
        else:
            fields.split(changed, quoted=quoted)

    def _indexed(self, name: str, index: str, state: State) -> str | None:
        values = state.arrays.get(name)
        if name == "BASH_SOURCE":
            return state.arguments[0] if state.arguments else None
        key = index[1:-1]
        if values is None:
            plain = marks.concrete(self.value(key.strip('"').lstrip("$"), state) or "") if "$" in key else key
            return state.variables.get(f"{name}[{plain}]")
        key = marks.concrete(self.value(key.lstrip("$"), state) or "") if not key.lstrip("-").isdigit() else key
        if not key.lstrip("-").isdigit() or not -len(values) <= int(key) < len(values):
            return None
        return values[int(key)]

    def _changed(self, value: str | None, rest: str, node: Node, state: State, name: str) -> str | None:
        operator = re.match(r":?[-=+?]|##?|%%?|//?|:|\^\^?|,,?", rest)
        if not operator:
            return None
        sign, argument_text = operator[0], rest[operator.end() :]
        if sign[-1] in "-=+?":
            missing = value is None or (sign[0] == ":" and not value)
            if name.isdigit() and int(name) >= len(state.arguments):
                missing = True
            if sign[-1] == "+":
                return "" if missing else self._argument(node, argument_text, state)
            if not missing:
                return value
            if sign[-1] == "?":
                return None
            default = self._argument(node, argument_text, state)
            if sign[-1] == "=":
                state.put(name, default)
            return default
        if value is None:
            return None
        pattern = marks.concrete(self._argument(node, argument_text, state))
        if sign in ("#", "##", "%", "%%"):
            return marks.derived(value, lambda plain: trimmed(plain, pattern, sign))
        if sign in ("/", "//"):
            old, _, new = pattern.partition("/")
            return marks.derived(
                value, lambda plain: plain.replace(old, new, 1 if sign == "/" else -1) if old else plain
            )
        if sign in ("^^", ",,"):
            return marks.derived(value, str.upper if sign == "^^" else str.lower)
        numbers = re.fullmatch(r"\s*(-?\d+)(?::(\d+))?", argument_text)
        if sign == ":" and numbers:
            start = int(numbers[1])
            length = int(numbers[2]) if numbers[2] else None
            return marks.derived(value, lambda plain: plain[start:][:length])
        return None

    def _argument(self, node: Node, written: str, state: State) -> str:
        """What stands behind the operator; as the grammar sees it where it does."""
        inner = [child for child in node.named_children if child.type not in ("variable_name", "subscript", "regex")]
        if inner and any(sign in written for sign in "$`'\""):
            return "".join(self.text(child, state) for child in inner)
        return unescape(written)

    # --- arithmetic -------------------------------------------------------------------------------------------------

    def number(self, node: Node, state: State) -> int | None:
        """An arithmetic expression; a count of live processes is taken as 0: none run yet."""
        kind = node.type
        if kind in (
            "number",
            "word",
            "variable_name",
            "simple_expansion",
            "expansion",
            "string",
            "command_substitution",
        ):
            return self._atom(node, state)
        named = node.named_children
        if kind in ("parenthesized_expression", "arithmetic_expansion") and len(named) == 1:
            return self.number(named[0], state)
        if kind == "unary_expression" and len(named) == 1:
            value = self.number(named[0], state)
            sign = text_of(node)[:1]
            return value if value is None else -value if sign == "-" else int(not value) if sign == "!" else value
        if kind == "ternary_expression" and len(named) == 3:
            test = self.number(named[0], state)
            return None if test is None else self.number(named[1 if test else 2], state)
        if kind == "binary_expression" and len(named) >= 2:
            left, right = self.number(named[0], state), self.number(named[-1], state)
            sign = next((text_of(child) for child in node.children if not child.is_named), "")
            return None if left is None or right is None else calculated(left, sign, right)
        return None

    def _atom(self, node: Node, state: State) -> int | None:
        written = text_of(node)
        if node.type in ("word", "variable_name") and not written.isdigit():
            value = self.value(written, state) if re.fullmatch(r"\w+", written) else None
        elif node.type == "number" or written.isdigit():
            value = written
        else:
            value = self.text(node, state)
        return as_number(value)


class _Fields:
    """Words as they grow; an unquoted value may end one and begin the next."""

    def __init__(self) -> None:
        self._ready: list[str] = []
        self._open: str | None = None

    def literal(self, text: str) -> None:
        self._open = (self._open or "") + text

    def split(self, text: str, *, quoted: bool) -> None:
        if not quoted and marks.references(text) and len(marks.concrete(text).split()) > 1:
            text = marks.concrete(text)  # the shell makes several words of it, a reference would be one
        if quoted or marks.has_marks(text):
            self.literal(text)
            return
        parts = text.split()
        if parts and text[0].isspace():
            self._end()
        for place, part in enumerate(parts):
            if place:
                self._end()
            self.literal(part)
        if parts and text[-1].isspace():
            self._end()

    def many(self, values: list[str], *, quoted: bool) -> None:
        for place, value in enumerate(values):
            if place:
                self._end()
            self.split(value, quoted=quoted)

    def done(self) -> list[str]:
        self._end()
        return self._ready

    def _end(self) -> None:
        if self._open is not None:
            self._ready.append(self._open)
            self._open = None


def as_number(value: str | None) -> int | None:
    """A value as a number; a count of live processes is 0, an unset variable too."""
    if value is None:
        return None
    if marks.is_unknown(value):
        return 0 if COUNTERS.search(marks.unknown_source(value)) else None
    plain = marks.concrete(value).strip()
    if not plain:
        return 0
    return int(plain) if re.fullmatch(r"-?\d{1,9}", plain) else None


def calculated(left: int, sign: str, right: int) -> int | None:
    if sign in ("/", "%") and right == 0:
        return None
    results: dict[str, Callable[[int, int], int]] = {
        "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: int(a / b),
        "%": lambda a, b: a - b * int(a / b), "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
        ">": lambda a, b: a > b, ">=": lambda a, b: a >= b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
        "&&": lambda a, b: int(bool(a and b)), "||": lambda a, b: int(bool(a or b)),
    }  # fmt: skip
    return int(results[sign](left, right)) if sign in results else None
