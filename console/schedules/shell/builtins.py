"""The commands a shell does itself. Pure."""

from __future__ import annotations

import re

from console.schedules import marks
from console.schedules.paths import resolve
from console.schedules.shell.conditions import outcome
from console.schedules.shell.expand import State, as_number
from console.schedules.shell.running import Runner
from console.schedules.shell.syntax import parse
from console.schedules.shell.values import Around, Leave, above, deeper


class Builtins(Runner):
    """Each _do_NAME does what the shell would, and tells how it ends where that is known."""

    def _do_cd(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        places = [word for word in found[1:] if not re.fullmatch(r"-[LPe@]+|--", word)]
        state.folder = resolve(places[0], state.folder, state.home) if places else state.home
        self._log(found, state, around)
        return True

    def _do_pushd(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        state.arrays["DIRSTACK"] = [*state.arrays.get("DIRSTACK", []), state.folder]
        return self._do_cd(found, prefix, state, around)

    def _do_popd(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        stack = state.arrays.get("DIRSTACK", [])
        if stack:
            state.folder = stack[-1]
            state.arrays["DIRSTACK"] = stack[:-1]
        return True

    def _do_set(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        for place, word in enumerate(found[1:], start=1):
            if word == "--":
                state.arguments = [state.arguments[0] if state.arguments else "", *found[place + 1 :]]
                break
            if re.fullmatch(r"-\w*a\w*", word) or (word == "allexport" and found[place - 1] == "-o"):
                state.export_all = True
            elif re.fullmatch(r"\+\w*a\w*", word) or (word == "allexport" and found[place - 1] == "+o"):
                state.export_all = False
        return True

    def _do_shift(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        number = as_number(found[1]) if len(found) > 1 else 1
        state.arguments = [*state.arguments[:1], *state.arguments[1 + (number or 0) :]]
        return True

    def _do_eval(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        text = " ".join(marks.concrete(word) for word in found[1:])
        if any(marks.is_unknown(word) for word in found[1:]):
            return None
        return self._text(text, state, deeper(around))

    def _do_exec(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        if len(found) == 1:
            for descriptor, _, target in around.outputs:
                if above(descriptor) and target:
                    state.descriptors[descriptor] = target
            state.outputs += tuple(each for each in around.outputs if not above(each[0]))
            return True
        self._program(found, prefix, state, around)
        if around.uncertain:
            self._left(state, around)
            return None
        raise Leave("exit")

    def _do_source(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        if len(found) < 2:
            return None
        path = marks.concrete(found[1])
        if marks.is_unknown(found[1]):
            self._notes.append(f"which file {path} is cannot be seen")
            return None
        self._log(found, state, around)
        return self._source(resolve(path, state.folder, state.home), found[1:], state, around)

    def _do_test(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        self._log(found, state, around)
        return outcome([word for word in found[1:] if word != "]"])

    def _do_ulimit(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        state.limits.append(" ".join(map(marks.shown, found)))
        return True

    def _do_let(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        root = parse(f"(({' '.join(found[1:])}))")
        return self._statement(root, state, around)

    def _do_exit(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        return self._leaves("exit", state, around)

    def _do_return(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        return self._leaves("return", state, around)

    def _do_break(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        return self._leaves("break", state, around)

    def _do_continue(self, found: tuple[str, ...], prefix: dict[str, str], state: State, around: Around) -> bool | None:
        return self._leaves("continue", state, around)

    def _leaves(self, how: str, state: State, around: Around) -> bool | None:
        if around.uncertain:
            self._left(state, around)
            return None
        raise Leave(how)

    @staticmethod
    def _left(state: State, around: Around) -> None:
        """The text may have ended here: what follows stands behind the opposite."""
        if around.gates:
            state.gates.append(around.gates[-1].inverted())

    _do_umask = _do_ulimit
