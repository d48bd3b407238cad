"""Variables, arithmetic, tests and redirections. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from console.schedules import marks
from console.schedules.paths import resolve
from console.schedules.shell.conditions import outcome
from console.schedules.shell.expand import COUNTERS, State, as_number
from console.schedules.shell.syntax import parse, text_of
from console.schedules.shell.texts import Follower
from console.schedules.shell.values import Around, Redirections

if TYPE_CHECKING:
    from tree_sitter import Node

_STEP = re.compile(r"(\+\+|--)([A-Za-z_]\w*)|([A-Za-z_]\w*)(\+\+|--)")


class Assignments(Follower):
    """What changes the state of the shell, and what asks for it."""

    def _on_variable_assignment(self, node: Node, state: State, around: Around) -> bool | None:
        self._assign(node, state)
        return None if "command_substitution" in str(node) else True

    def _on_variable_assignments(self, node: Node, state: State, around: Around) -> bool | None:
        for child in node.named_children:
            self._assign(child, state)
        return True

    def _assign(self, node: Node, state: State, *, export: bool = False) -> tuple[str, str] | None:
        name_node, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name_node is None:
            return None
        name = text_of(name_node)
        adding = any(child.type == "+=" for child in node.children)
        if value is not None and value.type == "array":
            keyed = [re.match(r"\[([^\]]+)\]=", text_of(child)) for child in value.named_children]
            if keyed and all(keyed):
                for child, key in zip(value.named_children, keyed, strict=True):
                    assert key is not None
                    state.variables[f"{name}[{key[1]}]"] = self._expand.text(child, state)[len(key[0]) :]
                state.arrays[f"!{name}"] = [key[1].strip("\"'") for key in keyed if key is not None]
                return None
            found = [word for child in value.named_children for word in self._expand.words(child, state)]
            state.arrays[name] = [*(state.arrays.get(name, []) if adding else []), *found]
            return None
        text = self._expand.text(value, state) if value is not None else ""
        if adding:
            if name in state.arrays:
                state.arrays[name].append(text)
                return None
            text = state.variables.get(name, "") + text
        if name in marks.references(text):
            text = marks.concrete(text)
        state.arrays.pop(name, None)
        state.put(name, text, export=export or (name in state.exported and name in state.own))
        return name, text

    def _on_declaration_command(self, node: Node, state: State, around: Around) -> bool | None:
        word = node.children[0].type if node.children else ""
        options = [text_of(child) for child in node.named_children if child.type == "word"]
        export = word == "export" or any(re.fullmatch(r"-\w*x\w*", option) for option in options)
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, state, export=export)
            elif child.type not in ("variable_name", "word") and export:
                self._export_words(self._expand.words(child, state), state)
            elif child.type == "variable_name" and export:
                name = text_of(child)
                if name in state.variables:
                    state.put(name, state.variables[name], export=True)
                else:
                    state.exported.add(name)
                    state.own.add(name)
        return True

    def _export_words(self, found: list[str], state: State) -> None:
        """export $(cat .env): what it prints is NAME=value."""
        for word in found:
            name, equals, value = word.partition("=")
            if equals and name.isidentifier():
                state.put(name, value, export=True)
            elif marks.is_unknown(word):
                self._notes.append(f"which variables export {marks.concrete(word)} sets cannot be seen")

    def _on_unset_command(self, node: Node, state: State, around: Around) -> bool | None:
        for child in node.named_children:
            state.variables.pop(text_of(child), None)
            state.exported.discard(text_of(child))
        return True

    def _on_test_command(self, node: Node, state: State, around: Around) -> bool | None:
        found = self._flat(node, state)
        self._log(tuple(found), state, around)
        return outcome(found[1:-1])

    def _flat(self, node: Node, state: State) -> list[str]:
        """The words of [ … ], [[ … ]] and (( … )), in order."""
        atoms = (
            "word",
            "number",
            "string",
            "raw_string",
            "ansi_c_string",
            "simple_expansion",
            "expansion",
            "command_substitution",
            "concatenation",
            "arithmetic_expansion",
            "test_operator",
            "regex",
            "extglob_pattern",
            "variable_name",
        )
        found: list[str] = []
        for child in node.children:
            if child.type == "variable_name" or (
                node.type != "test_command" and child.type == "word" and self._in_math(child)
            ):
                written = text_of(child)
                value = self._expand.value(written, state)
                found.append(
                    value if value is not None else marks.unknown(f"${written}") if written.isidentifier() else written
                )
            elif child.type in atoms:
                words_of = self._expand.words(child, state)
                found += words_of or [""]
            elif child.child_count:
                found += self._flat(child, state)
            else:
                found.append(text_of(child))
        return found

    @staticmethod
    def _in_math(node: Node) -> bool:
        parent = node.parent
        while parent is not None and parent.type not in ("test_command", "compound_statement", "arithmetic_expansion"):
            parent = parent.parent
        return parent is not None and parent.type == "compound_statement"

    def _redirections(self, nodes: Sequence[Node], state: State) -> Redirections:
        found: list[tuple[str, str, str]] = []
        for node in nodes:
            if node.type != "file_redirect":
                continue
            descriptor = node.child_by_field_name("descriptor")
            destination = node.child_by_field_name("destination")
            sign = next((child.type for child in node.children if not child.is_named), "")
            target = self._expand.text(destination, state) if destination is not None else ""
            if target and not sign.endswith("&") and not marks.concrete(target).startswith("/dev/"):
                target = resolve(target, state.folder, state.home)
            number = text_of(descriptor) if descriptor is not None else "0" if sign == "<" else "1"
            found.append((number, sign, target))
        return tuple(found)

    def _input(self, node: Node, state: State) -> list[str] | None:
        """The lines on stdin, when a here-document, a here-string or a readable file gives them."""
        for redirect in node.children_by_field_name("redirect"):
            if redirect.type == "heredoc_redirect":
                body = next((child for child in redirect.children if child.type == "heredoc_body"), None)
                start = next((text_of(child) for child in redirect.children if child.type == "heredoc_start"), "")
                if body is None:
                    return []
                text = text_of(body)
                if not start.startswith(("'", '"', "\\")) and body.named_child_count:
                    text = self._expand.text(body, state)
                return [line.lstrip("\t") for line in text.splitlines()]
            if redirect.type == "herestring_redirect":
                inner = redirect.named_children
                return self._expand.text(inner[0], state).splitlines() if inner else []
            if redirect.type == "file_redirect" and any(child.type == "<" for child in redirect.children):
                destination = redirect.child_by_field_name("destination")
                if destination is None or destination.type == "process_substitution":
                    return None
                found = self._read(resolve(self._expand.text(destination, state), state.folder, state.home))
                return None if found is None or found.problem else found.text.splitlines()
        return None

    def _arithmetic(self, node: Node, state: State, around: Around) -> bool | None:
        inner = node.named_children
        if not inner:
            return None
        steps = list(_STEP.finditer(text_of(inner[0]))) if around.condition else []
        if steps:
            self._step([(step[2], step[1]) for step in steps if step[1]], state)
            text = _STEP.sub(lambda step: step[2] or step[3], text_of(inner[0]))
            status = self._statement(parse(f"(({text}))"), state, around)
            self._step([(step[3], step[4]) for step in steps if step[3]], state)
            return status
        raw = [text_of(child) for child in node.children]
        self._log(tuple(self._flat(node, state)) or tuple(raw), state, around)
        if inner[0].type in ("postfix_expression", "variable_assignment", "unary_expression"):
            self._update(inner[0], state)
            return None
        if COUNTERS.search(" ".join(self._flat(node, state))):
            return None
        value = self._expand.number(inner[0], state)
        return None if value is None else value != 0

    def _step(self, steps: Sequence[tuple[str, str]], state: State) -> None:
        """++ or -- of each name."""
        for name, sign in steps:
            number = self._number_of(name, state)
            after = None if number is None else number + (1 if sign == "++" else -1)
            state.put(name, marks.unknown(f"${name}") if after is None else str(after))

    def _update(self, node: Node, state: State) -> None:
        """i=0, i++, i+=2 within (( )) and let."""
        found = re.fullmatch(r"\s*(\w+)\s*(=|\+\+|--|[-+*]=)\s*(.*)", text_of(node), re.DOTALL)
        if not found:
            found = re.fullmatch(r"\s*()(\+\+|--)(\w+)\s*", text_of(node))
            if not found:
                return
            name, sign, rest = found[3], found[2], ""
        else:
            name, sign, rest = found[1], found[2], found[3]
        before = self._number_of(name, state)
        if sign in ("++", "--"):
            after = None if before is None else before + (1 if sign == "++" else -1)
        else:
            named = node.named_children
            amount = self._expand.number(named[-1], state) if named and rest else None
            if amount is None and rest:
                amount = self._number_of(rest.strip(), state)
            if sign == "=":
                after = amount
            else:
                after = None
                if before is not None and amount is not None:
                    after = {"+=": before + amount, "-=": before - amount, "*=": before * amount}[sign]
        state.put(name, marks.unknown(f"${name}") if after is None else str(after))

    def _number_of(self, text: str, state: State) -> int | None:
        if re.fullmatch(r"-?\d+", text):
            return int(text)
        value = state.variables.get(text.lstrip("$"), "")
        return as_number(value)
