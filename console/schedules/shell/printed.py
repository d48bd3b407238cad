"""What a command prints, where that can be told from its words alone. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from console.schedules import marks
from console.schedules.model import ScriptText
from console.schedules.paths import resolve, search, usual
from console.schedules.shell.expand import Expander, State, as_number

if TYPE_CHECKING:
    from tree_sitter import Node

Read = Callable[[str], ScriptText | None]


class Printer:
    def __init__(self, expander: Expander, read: Read) -> None:
        self._expander = expander
        self._read = read

    def of_block(self, node: Node, state: State) -> str | None:
        """The output of $(…) with one statement in it."""
        named = [child for child in node.children if child.is_named and child.type != "comment"]
        if len(named) == 1 and named[0].type == "file_redirect":
            return self._file(named[0].named_children[-1], state)
        if len(named) != 1:
            return None
        return self.printed(named[0], state, None)

    def printed(self, node: Node, state: State, stdin: str | None) -> str | None:
        """The output of a statement; None when it is not known."""
        if node.type == "command":
            return self._command(node, state, stdin)
        if node.type == "redirected_statement":
            body = node.child_by_field_name("body")
            if body is None:
                return self._redirected(node, state)
            return self.printed(body, state, self._redirected(node, state) or stdin)
        if node.type == "pipeline":
            out = stdin
            for child in node.named_children:
                out = self.printed(child, state, out)
            return out
        if node.type == "list" and node.named_child_count == 2:
            inner = state.copy()
            first = node.named_children[0]
            if first.type == "redirected_statement":
                first = first.child_by_field_name("body") or first
            found = self._words(first, inner) if first.type == "command" else []
            if found[:1] == ["cd"] and len(found) > 1:
                inner.folder = resolve(found[-1], state.folder, state.home)
                return self.printed(node.named_children[1], inner, stdin)
        return None

    def _words(self, node: Node, state: State) -> list[str]:
        found: list[str] = []
        for child in node.named_children:
            if child.type == "command_name":
                found += self._expander.words(child.children[0], state) if child.children else []
            elif "redirect" not in child.type and child.type != "variable_assignment":
                found += self._expander.words(child, state)
        return found

    def _redirected(self, node: Node, state: State) -> str | None:
        for child in node.children_by_field_name("redirect"):
            if child.type == "file_redirect" and any(part.type == "<" for part in child.children):
                return self._file(child.named_children[-1], state)
        return None

    def _file(self, node: Node, state: State) -> str | None:
        found = self._read(resolve(self._expander.text(node, state), state.folder, state.home))
        return None if found is None or found.problem else found.text

    def _command(self, node: Node, state: State, stdin: str | None) -> str | None:
        words = self._words(node, state)
        if not words:
            return None
        name, arguments = words[0].rpartition("/")[2], words[1:]
        plain = [word for word in arguments if not re.fullmatch(r"-[A-Za-z]+|--", word)]
        if name == "echo":
            return " ".join(word for word in arguments if word not in ("-n", "-e", "-ne", "-en")) + "\n"
        if name == "printf" and plain:
            return _printf(plain)
        if name == "seq":
            return _sequence(arguments)
        if name in ("basename", "dirname") and plain:
            return marks.derived(plain[0], lambda path: _part_of_path(name, path, plain[1:]))
        if name == "pwd":
            return resolve(".", state.folder, state.home)
        if name in ("realpath", "readlink") and plain:
            return resolve(plain[-1], state.folder, state.home)
        if name in ("whoami", "logname") or (name == "id" and set(arguments) & {"-un", "-nu"}):
            return state.variables.get("LOGNAME")
        if name == "which" or (name in ("command", "type") and arguments[:1] in (["-v"], ["-p"], ["-P"])):
            return self._which(plain[-1], state) if plain else None
        if name == "xargs" and not plain:
            return None if stdin is None else " ".join(stdin.split()) + "\n"
        if name in ("grep", "egrep") and plain:
            return self._grep(plain, [word for word in arguments if word.startswith("-")], stdin, state)
        if name == "cat":
            return self._cat(plain, stdin, state)
        if name == "expr" and len(arguments) == 3:
            return self._expr(arguments)
        return None

    def _which(self, name: str, state: State) -> str:
        if "/" in name:
            return name
        found = search(name, state.variables.get("PATH", "/usr/bin:/bin"), self._read)
        return found.path if found is not None else usual(name)

    def _cat(self, paths: list[str], stdin: str | None, state: State) -> str | None:
        if not paths:
            return stdin
        texts = [self._read(resolve(path, state.folder, state.home)) for path in paths]
        if any(text is None or text.problem for text in texts):
            return None
        return "".join(text.text for text in texts if text is not None)

    def _grep(self, plain: list[str], options: list[str], stdin: str | None, state: State) -> str | None:
        """grep PATTERN FILE and grep -v PATTERN FILE of a text that is known."""
        text = self._cat(plain[1:], stdin, state)
        if text is None or any(re.search(r"[^vEwi-]", option) for option in options):
            return None
        try:
            pattern = re.compile(marks.concrete(plain[0]))
        except re.error:
            return None
        inverted = any("v" in option for option in options)
        return "".join(f"{line}\n" for line in text.splitlines() if bool(pattern.search(line)) is not inverted)

    @staticmethod
    def _expr(arguments: list[str]) -> str | None:
        from console.schedules.shell.expand import calculated

        left, right = as_number(arguments[0]), as_number(arguments[2])
        value = None if left is None or right is None else calculated(left, arguments[1], right)
        return None if value is None else str(value)


def _printf(arguments: list[str]) -> str | None:
    """printf FORMAT ARGUMENTS…, with %s, %d and widths."""
    form = arguments[0].replace("\\n", "\n").replace("\\t", "\t")
    places = re.findall(r"%(0?\d*)([sd%])", form)
    wanted = sum(1 for _, kind in places if kind != "%")
    if form.count("%") != len(places) + sum(1 for _, kind in places if kind == "%"):
        return None
    values = arguments[1:] or [""] * wanted
    if not wanted:
        return form.replace("%%", "%")
    out: list[str] = []
    for start in range(0, len(values), wanted):
        turn = iter([*values[start : start + wanted], *[""] * wanted])

        def one(found: re.Match[str], turn: Iterator[str] = turn) -> str:
            if found[2] == "%":
                return "%"
            value = next(turn)
            width = found[1]
            fill = "0" if width.startswith("0") else " "
            return str(marks.derived(value, lambda plain: plain.rjust(int(width), fill) if width else plain))

        out.append(re.sub(r"%(0?\d*)([sd%])", one, form))
    return "".join(out)


def _sequence(arguments: list[str]) -> str | None:
    padded = "-w" in arguments
    separator = "\n"
    form = "%d"
    if "-f" in arguments:
        at = arguments.index("-f")
        form = re.sub(r"%(0?\d*)g", r"%\1d", arguments[at + 1] if at + 1 < len(arguments) else "")
        arguments = arguments[:at] + arguments[at + 2 :]
        if not re.fullmatch(r"[^%]*%0?\d*d[^%]*", form):
            return None
    parted = [("-s", word[2:]) if word.startswith("-s") and len(word) > 2 else (word,) for word in arguments]
    arguments = [word for part in parted for word in part]
    if "-s" in arguments:
        at = arguments.index("-s")
        separator = arguments[at + 1] if at + 1 < len(arguments) else "\n"
        arguments = arguments[:at] + arguments[at + 2 :]
    numbers = [as_number(word) for word in arguments if word not in ("-w",)]
    if not numbers or any(number is None for number in numbers):
        return None
    known = [number for number in numbers if number is not None]
    low, step, high = (1, 1, known[0]) if len(known) == 1 else (known[0], 1, known[1])
    if len(known) == 3:
        low, step, high = known
    if step == 0 or abs(high - low) > 10_000:
        return None
    found = list(range(low, high + (1 if step > 0 else -1), step))
    width = max((len(str(number)) for number in found), default=0) if padded else 0
    return separator.join((form % number).zfill(width) for number in found)


def _part_of_path(name: str, path: str, suffix: list[str]) -> str:
    if name == "dirname":
        return posixpath.dirname(path.rstrip("/")) or ("/" if path.startswith("/") else ".")
    base = path.rstrip("/").rpartition("/")[2]
    return base.removesuffix(suffix[0]) if suffix and base != suffix[0] else base
