"""Loops, turn by turn where their values can be seen. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from console.schedules import marks
from console.schedules.shell.builtins import Builtins
from console.schedules.shell.expand import COUNTERS, State, as_number
from console.schedules.shell.syntax import text_of
from console.schedules.shell.values import TURNS, Around, Leave

if TYPE_CHECKING:
    from tree_sitter import Node

_COUNTED = re.compile(r"(?:\$\(|`)\s*seq\s+(?:-w\s+)?(?:(\d+)\s+)?")  # as many turns as it prints numbers


class Loops(Builtins):
    """for, while, until, and getopts."""

    def _body(self, node: Node, state: State, around: Around) -> bool:
        """One turn; False when the loop is left."""
        body = node.child_by_field_name("body")
        if body is None:
            return True
        try:
            self._block(body, state, around)
        except Leave as leave:
            if leave.how == "break":
                return False
            if leave.how != "continue":
                raise
        return True

    def _on_for_statement(self, node: Node, state: State, around: Around) -> bool | None:
        variable = node.child_by_field_name("variable")
        name = text_of(variable) if variable is not None else "_"
        if any(child.type == "in" for child in node.children):
            values = [word for each in node.children_by_field_name("value") for word in self._expand.words(each, state)]
        else:
            values = state.arguments[1:]
        if any(marks.is_unknown(value) or "*" in value or "?" in value for value in values):
            counted = _COUNTED.match(marks.unknown_source(values[0])) if len(values) == 1 else None
            first = (counted[1] or "1") if counted else ""
            state.variables[name] = marks.loop(name, first) if counted else marks.unknown(f"${name}")
            self._body(node, state, around._replace(times=None))
            return None
        self._turns(node, name, values, state, around)
        return None

    def _turns(self, node: Node, name: str, values: list[str], state: State, around: Around) -> None:
        if len(values) > TURNS:
            times = None if around.times is None else around.times * len(values)
            around, values = around._replace(times=times), values[:1]
        for value in values:
            state.variables[name] = marks.loop(name, value)
            if not self._body(node, state, around):
                break

    def _on_c_style_for_statement(self, node: Node, state: State, around: Around) -> bool | None:
        first = node.child_by_field_name("initializer")
        condition, update = node.child_by_field_name("condition"), node.child_by_field_name("update")
        if condition is None:
            self._body(node, state, around._replace(endless="while"))
            return None
        name = ""
        if first is not None:
            self._update(first, state)
            name = next((text_of(child) for child in first.named_children if child.type == "variable_name"), "")
        for turn in range(TURNS):
            number = self._expand.number(condition, state)
            if number is None:
                if name and not marks.has_marks(state.variables.get(name, "")):
                    state.variables[name] = marks.loop(name, state.variables.get(name, ""))
                self._body(node, state, around._replace(times=None))
                return None
            if not number:
                return None
            if name and name in state.variables:
                value = marks.concrete(state.variables[name])
                state.variables[name] = marks.loop(
                    name, value if not marks.is_unknown(state.variables[name]) else str(turn)
                )
            if not self._body(node, state, around) or update is None:
                return None
            self._update(update, state)
        return None

    def _on_while_statement(self, node: Node, state: State, around: Around) -> bool | None:
        return self._while(node, state, around, None)

    def _while(self, node: Node, state: State, around: Around, lines: list[str] | None) -> bool | None:
        conditions = [child for child in node.children_by_field_name("condition") if child.is_named]
        until = bool(node.children) and node.children[0].type == "until"
        last = conditions[-1] if conditions else None
        if last is not None and last.type == "command":
            found = text_of(last).split()
            while found and "=" in found[0]:  # IFS= read
                found = found[1:]
            if found[:1] == ["read"]:
                return self._while_read(node, found, state, around, lines)
            if found[:1] == ["getopts"] and len(found) >= 3:
                return self._getopts(node, found[1].strip("'\""), found[2], state, around)
        kind = "until" if until else "while"
        for _ in range(TURNS):
            before = len(self._commands)
            status: bool | None = None
            for child in conditions:
                status = self._statement(child, state, around._replace(condition=True, endless=kind, background=False))
            if status is None:
                gated = self._gated(around, before, not until)
                counter = self._counter(conditions, state)
                if counter and re.search(rf"(?<![\w$]){counter}(=|\+\+|--|[-+]=)", text_of(node)):
                    kind = ""  # it ends, after as many turns as nobody can see
                    state.variables[counter] = marks.loop(counter, marks.concrete(state.variables[counter]))
                counted = any(COUNTERS.search(" ".join(map(marks.concrete, each))) for each in gated.gates[-1].commands)
                self._body(
                    node,
                    state,
                    gated._replace(times=around.times if counted else None, endless="" if counted else kind),
                )
                return None
            if status is until:
                return None
            counter = self._counter(conditions, state)
            shifted = not counter and self._shifted(node, conditions, state)
            if not (counter or shifted):
                self._body(node, state, around._replace(endless="while"))
                return None
            if counter:
                state.variables[counter] = marks.loop(counter, marks.concrete(state.variables[counter]))
            if not self._body(node, state, around):
                return None
        return None

    def _while_read(
        self, node: Node, found: list[str], state: State, around: Around, lines: list[str] | None
    ) -> bool | None:
        """while read NAME: one turn for each line that can be seen."""
        names = [word for word in found[1:] if re.fullmatch(r"[A-Za-z_]\w*", word)] or ["REPLY"]
        if lines is None:
            for name in names:
                state.variables[name] = marks.unknown(f"${name}")
            self._body(node, state, around._replace(endless="read", times=None))
            return None
        for line in lines[:TURNS]:
            parts = line.split(None, len(names) - 1)
            for place, name in enumerate(names):
                state.variables[name] = marks.loop(name, parts[place]) if place < len(parts) else ""
            if not self._body(node, state, around):
                break
        return None

    def _getopts(self, node: Node, options: str, name: str, state: State, around: Around) -> bool | None:
        """while getopts OPTIONS NAME: one turn for each option that was given."""
        rest = list(state.arguments[1:])
        taken = 0
        while rest and rest[0].startswith("-") and len(rest[0]) > 1:
            word = rest.pop(0)
            taken += 1
            if word == "--":
                break
            for place, letter in enumerate(word[1:], start=1):
                state.variables[name] = letter if letter in options else "?"
                if f"{letter}:" in options:
                    value = word[place + 1 :]
                    if not value and rest:
                        value, taken = rest.pop(0), taken + 1
                    state.variables["OPTARG"] = value
                    self._body(node, state, around)
                    break
                self._body(node, state, around)
        state.variables["OPTIND"] = str(taken + 1)
        return None

    @staticmethod
    def _shifted(node: Node, conditions: list[Node], state: State) -> bool:
        """A loop that takes the arguments one by one: each is one turn's."""
        body = text_of(node)
        if not re.search(r"\$(#|\{?1\b)", " ".join(map(text_of, conditions))) or not re.search(r"\bshift\b", body):
            return False
        named = re.search(r"\b([A-Za-z_]\w*)=[\"']?\$\{?1\b", body)
        name = named[1] if named else "argument"
        state.arguments[1:] = [value and marks.loop(name, value) for value in state.arguments[1:]]
        return True

    def _counter(self, conditions: list[Node], state: State) -> str:
        """The variable a loop counts with; "" when it has none that is known."""
        for child in conditions:
            for name in re.findall(r"\$?\{?([A-Za-z_]\w*)", text_of(child)):
                if name in state.variables and as_number(state.variables[name]) is not None:
                    return str(name)
        return ""
