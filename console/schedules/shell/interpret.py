"""Follows shell text the way a shell would, without running anything. Pure.

Loops are walked turn by turn where their values can be seen, functions and scripts are followed with their arguments,
`sh -c`, `su -c`, `flock` and the like are opened. What is unknown stays marked; both ways of an open condition are
followed, and each command tells which conditions it stands behind. It never raises.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from console.schedules import marks
from console.schedules.commands import SHELLS
from console.schedules.shell.expand import Gate, State
from console.schedules.shell.loops import Loops
from console.schedules.shell.syntax import text_of
from console.schedules.shell.values import Around, Leave, Read, Reading, above

if TYPE_CHECKING:
    from tree_sitter import Node


def interpret(
    text: str,
    *,
    environment: Mapping[str, str],
    home: str,
    user: str,
    read: Read,
    stdin: str = "",
    home_of: Callable[[str], str] | None = None,
    arguments: Sequence[str] = (),
) -> Reading:
    """Everything a text runs, in order. `environment`: of the shell; `read`: a file's text, None when it is absent."""
    return Statements(read, user, home_of or default_home).line(text, environment, home, stdin, arguments)


def default_home(user: str) -> str:
    return "/root" if user == "root" else f"/home/{user}"


class Statements(Loops):
    """Lists, pipelines, conditions, functions."""

    def _on_comment(self, node: Node, state: State, around: Around) -> bool | None:
        return True

    def _on_word(self, node: Node, state: State, around: Around) -> bool | None:
        return None

    def _on_redirected_statement(self, node: Node, state: State, around: Around) -> bool | None:
        body = node.child_by_field_name("body")
        if body is None:
            return True
        status = self._redirected(body, node, state, around)
        for redirect in node.children_by_field_name("redirect"):
            if redirect.type == "heredoc_redirect":  # the grammar puts what follows on the line into it
                for child in redirect.named_children:
                    if child.type in ("pipeline", "command", "list", "redirected_statement"):
                        self._statement(child, state, around._replace(uncertain=True))
        return status

    def _redirected(self, body: Node, node: Node, state: State, around: Around) -> bool | None:
        """A redirection behind a list or a pipeline belongs to its last command."""
        if body.type in ("list", "pipeline"):
            named = [child for child in body.children if child.is_named]
            last = named[-1]
            if body.type == "list":
                sign = next((text_of(child) for child in body.children if child.type in ("&&", "||")), "&&")
                return self._joined(named[0], sign, last, state, around, node)
            return self._pipe(named, state, around, node)
        found = self._redirections(node.children_by_field_name("redirect"), state)
        inner = around._replace(
            outputs=around.outputs + found,
            closes_lock=around.closes_lock or any(sign.endswith("&-") and above(fd) for fd, sign, _ in found),
        )
        if body.type in ("subshell", "compound_statement"):
            for descriptor, _, target in found:
                if above(descriptor) and target:
                    state.descriptors[descriptor] = target
        lines = self._input(node, state)
        if body.type == "while_statement" and lines is not None:
            return self._while(body, state, inner, lines)
        status = self._statement(body, state, inner)
        text = "\n".join(lines) if lines else ""
        if text and body.type == "command":
            found_words = text_of(body).split()
            shells = found_words and (found_words[-1].rpartition("/")[2] in SHELLS or found_words[0] in ("su", "sudo"))
            if shells and "-c" not in found_words:
                self._fed(text_of(body), text, state, inner)
        return status

    def _on_list(self, node: Node, state: State, around: Around) -> bool | None:
        named = [child for child in node.children if child.is_named]
        sign = next((text_of(child) for child in node.children if child.type in ("&&", "||")), "&&")
        if len(named) < 2:
            return self._block(node, state, around)
        return self._joined(named[0], sign, named[-1], state, around, None)

    def _joined(
        self, left: Node, sign: str, right: Node, state: State, around: Around, redirected: Node | None
    ) -> bool | None:
        before = len(self._commands)
        status = self._statement(left, state, around._replace(background=False))
        if status is (sign == "||"):
            return status
        inner = around
        if status is None:
            inner = self._gated(around, before, sign == "&&")
        if redirected is not None:
            return self._redirected(right, redirected, state, inner)
        return self._statement(right, state, inner)

    def _on_pipeline(self, node: Node, state: State, around: Around) -> bool | None:
        return self._pipe([child for child in node.children if child.is_named], state, around, None)

    def _pipe(self, parts: list[Node], state: State, around: Around, redirected: Node | None) -> bool | None:
        printed: str | None = None
        for place, part in enumerate(parts):
            if part.type == "negated_command":
                self._log(("!",), state, around)
                part = part.named_children[0]
            last = place == len(parts) - 1
            inner = around._replace(piped=True)
            lines = None if printed is None else printed.splitlines()
            if part.type == "while_statement" and place:
                self._while(part, state.copy(), inner, lines)
            elif place and part.type == "command" and (spread := self._spread_words(part, state)) is not None:
                self._spread(spread, lines, state, inner)
            elif last and redirected is not None:
                self._redirected(part, redirected, state.copy(), inner)
            else:
                self._apart(part, state, inner)
            printed = self._printer.printed(part, state, printed)
        return None

    def _on_negated_command(self, node: Node, state: State, around: Around) -> bool | None:
        self._log(("!",), state, around)
        status = self._statement(node.named_children[0], state, around)
        return None if status is None else not status

    def _on_subshell(self, node: Node, state: State, around: Around) -> bool | None:
        inner = state.copy()
        try:
            return self._block(node, inner, around)
        except Leave:
            return None

    def _on_compound_statement(self, node: Node, state: State, around: Around) -> bool | None:
        if node.children and node.children[0].type == "((":
            return self._arithmetic(node, state, around)
        return self._block(node, state, around)

    def _on_if_statement(self, node: Node, state: State, around: Around) -> bool | None:
        inner = around
        part = "condition"
        before = len(self._commands)
        status: bool | None = None
        for child in node.children:
            if child.type in ("if", "elif"):
                before = len(self._commands)
            elif child.type == "then":
                part = "body" if status is not False else "skip"
                taken = self._gated(inner, before, True) if status is None else inner
            elif child.type in ("elif_clause", "else_clause"):
                if status is True:
                    return True
                inner = self._gated(inner, before, False) if status is None else inner
                if child.type == "else_clause":
                    return self._block(child, state, inner)
                return self._on_if_statement(child, state, inner)
            elif child.is_named and child.type != "comment":
                background = child.next_sibling is not None and child.next_sibling.type == "&"
                if part == "condition":
                    status = self._statement(child, state, inner._replace(condition=True, background=False))
                elif part == "body" and background:
                    self._apart(child, state, taken._replace(background=True))
                elif part == "body":
                    self._statement(child, state, taken)
        return None

    def _on_elif_clause(self, node: Node, state: State, around: Around) -> bool | None:
        return self._on_if_statement(node, state, around)

    def _on_case_statement(self, node: Node, state: State, around: Around) -> bool | None:
        value = node.child_by_field_name("value")
        subject = self._expand.text(value, state) if value is not None else ""
        known = not marks.is_unknown(subject)
        for item in node.children:
            if item.type != "case_item":
                continue
            patterns = [self._expand.text(each, state) for each in item.children_by_field_name("value")]
            fits = any(fnmatch.fnmatchcase(marks.concrete(subject), marks.concrete(each)) for each in patterns)
            if known and not fits:
                continue
            inner = around
            if not known:
                test = ("[", subject, "=", "|".join(patterns), "]")
                inner = around._replace(uncertain=True, gates=(*around.gates, Gate((test,), True, around.where)))
            in_body = False
            for child in item.children:
                if child.type == ")":
                    in_body = True
                elif in_body and child.is_named and child.type != "comment":
                    following = child.next_sibling
                    if following is not None and following.type == "&":
                        self._apart(child, state, inner._replace(background=True))
                    else:
                        self._statement(child, state, inner)
            if known:
                return None
        return None

    def _on_function_definition(self, node: Node, state: State, around: Around) -> bool | None:
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        if name is not None and body is not None:
            state.functions[text_of(name)] = body
        return True
