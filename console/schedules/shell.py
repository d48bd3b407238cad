"""A reading of shell text good enough to see which programs it starts, how often, guarded by what. Pure.

It is not a shell: it knows quoting, operators, loops, conditions, simple variables and command substitution, and runs
nothing. What it cannot resolve stays as text (`$NAME`) or is counted as unknown (None). It never raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from console.fleet.model import Value

LONGEST = 64 * 1024  # characters of a script that are read
_DEEPEST = 4  # shells within shells

_OPENERS = frozenset({"for", "while", "until", "select"})
_SKIPPED = frozenset({"if", "then", "else", "elif", "do", "!", "{", "time", "fi", "}", "esac", "("})


class Token(NamedTuple):
    kind: str  # "word", "op", "arith"
    text: str
    inner: tuple[str, ...] = ()  # texts of $(…) and `…` within the word


class Simple(Value, frozen=True, kw_only=True):
    """One simple command."""

    words: tuple[str, ...]
    background: bool = False
    times: int | None = 1  # how often one run of the text starts it; None: it cannot be seen
    after_or: bool = False  # stands behind ||: runs when what is before it failed
    after_and: bool = False
    conditional: bool = False  # within if … fi or case
    condition: bool = False  # is itself the condition of an if, while or until
    substitution: bool = False  # within $(…) or `…`: its output is used
    closes_lock: bool = False  # a redirection N>&- closes a descriptor above 2
    piped: bool = False  # part of a pipeline
    depth: int = 0  # 0: of the text itself; more: of the text of sh -c, su -c, …
    around: tuple[tuple[str, ...], ...] = ()  # the commands whose text holds this one, outermost first


def simple_commands(
    text: str, variables: Mapping[str, str] | None = None, depth: int = 0, times: int | None = 1
) -> list[Simple]:
    """The simple commands in order: those of $(…) before the command that holds them, those of `sh -c TEXT` after."""
    return _Reader(dict(variables or {}), depth, times).read(tokens(text[:LONGEST]))


def tokens(text: str) -> list[Token]:
    """Words, operators and line ends (";"). Redirections are dropped, N>&- becomes the operator "close"."""
    found: list[Token] = []
    place, end = 0, len(text)
    heredocs: list[str] = []
    while place < end:
        char = text[place]
        if char in " \t\r":
            place += 1
        elif char == "\\" and text[place + 1 : place + 2] == "\n":
            place += 2
        elif char == "\n":
            found.append(Token("op", ";"))
            place += 1
            for mark in heredocs:
                stop = re.compile(rf"^\t*{re.escape(mark)}[ \t]*$", re.MULTILINE).search(text, place)
                place = stop.end() if stop else end
            heredocs = []
        elif char == "#":
            stop_at = text.find("\n", place)
            place = end if stop_at < 0 else stop_at
        elif text.startswith("((", place) and (not found or found[-1].text in ("for", ";", "do", "then", "&&", "||")):
            stop_at = text.find("))", place)
            stop_at = end if stop_at < 0 else stop_at
            found.append(Token("arith", text[place + 2 : stop_at]))
            place = stop_at + 2
        elif redirection := re.compile(r"(?:\d*|&)(?:<<<|<<-?|>>|>\||>&|<&|<>|>|<)[ \t]*").match(text, place):
            place = redirection.end()
            operator = redirection[0].strip()
            target, place = _word(text, place)
            if operator.endswith(("<<", "<<-")):
                heredocs.append(target.text.strip("'\""))
            elif target.text == "-" and operator.rstrip("><&").isdigit() and int(operator.rstrip("><&")) > 2:
                found.append(Token("op", "close"))
        elif operator_found := re.compile(r"&&|\|\||;;&?|;&|\|&|[;&|()]").match(text, place):
            found.append(Token("op", operator_found[0]))
            place = operator_found.end()
        else:
            word, stopped = _word(text, place)
            found.append(word)
            place = max(stopped, place + 1)
    return found


def _word(text: str, place: int) -> tuple[Token, int]:
    """One word with its quotes opened; `$` stays, single-quoted `$` becomes NUL until variables are put in."""
    out: list[str] = []
    inner: list[str] = []
    end = len(text)
    quoted = False
    while place < end:
        char = text[place]
        if char == "'" and not quoted:
            stop = text.find("'", place + 1)
            stop = end if stop < 0 else stop
            out.append(text[place + 1 : stop].replace("$", "\x00"))
            place = stop + 1
        elif char == '"':
            quoted = not quoted
            place += 1
        elif char == "\\" and place + 1 < end:
            following = text[place + 1]
            if following == "\n":
                pass
            elif quoted and following not in '$`"\\':
                out.append(char + following)
            else:
                out.append("\x00" if following == "$" else following)
            place += 2
        elif text.startswith("$((", place):
            stop = text.find("))", place)
            stop = end if stop < 0 else stop + 2
            out.append(text[place:stop])
            place = stop
        elif text.startswith("$(", place):
            stop = _closing(text, place + 2)
            inner.append(text[place + 2 : stop])
            out.append(f"$({text[place + 2 : stop]})")
            place = stop + 1
        elif text.startswith("${", place):
            stop = text.find("}", place)
            stop = end if stop < 0 else stop + 1
            out.append(text[place:stop])
            place = stop
        elif char == "`":
            stop = text.find("`", place + 1)
            stop = end if stop < 0 else stop
            inner.append(text[place + 1 : stop])
            out.append(f"$({text[place + 1 : stop]})")
            place = stop + 1
        elif not quoted and char in " \t\r\n;&|()<>":
            break
        else:
            out.append(char)
            place += 1
    return Token("word", "".join(out), tuple(inner)), place


def _closing(text: str, place: int) -> int:
    """Where the parenthesis that is open at `place` closes; quotes are respected."""
    depth, quote = 1, ""
    while place < len(text):
        char = text[place]
        if char == "\\":
            place += 1
        elif quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return place
        place += 1
    return len(text)


class _Reader:
    """Walks the tokens once; keeps the loops, the conditions and the variables."""

    def __init__(self, variables: dict[str, str], depth: int, times: int | None) -> None:
        self._variables = variables
        self._depth = depth
        self._loops: list[int | None] = [times]
        self._ifs = 0
        self._in_condition = False
        self._found: list[Simple] = []

    def read(self, found: list[Token]) -> list[Simple]:
        command: list[Token] = []
        joined = ""
        closes = False
        for place, token in enumerate([*found, Token("op", ";")]):
            if token.kind == "op" and token.text == "close":
                closes = True
            elif token.kind == "op":
                following = found[place + 1].text if place + 1 < len(found) else ""
                piped = token.text in ("|", "|&") or joined in ("|", "|&")
                self._take(
                    command, joined, token.text == "&" or (token.text == ")" and following == "&"), piped, closes
                )
                if command or token.text not in (";",):
                    joined = (
                        token.text if token.text in ("&&", "||", "|", "|&") else "" if token.text != "(" else joined
                    )
                command, closes = [], False
            else:
                command.append(token)
        return self._found

    def _take(self, command: list[Token], joined: str, background: bool, piped: bool, closes: bool) -> None:
        while command and command[0].kind == "word":
            first = command[0].text
            if first in _OPENERS:
                self._loops.append(self._loop(command))
                if first in ("for", "select"):
                    return
                self._in_condition = True
            elif first == "done":
                if len(self._loops) > 1:
                    self._loops.pop()
                if background:
                    self._in_background()
                return
            elif first in ("if", "elif", "case"):
                self._ifs += first != "elif"
                self._in_condition = first != "case"
                if first == "case":
                    return
            elif first in ("fi", "esac"):
                self._ifs = max(0, self._ifs - 1)
            elif first in ("then", "do"):
                self._in_condition = False
            elif first not in _SKIPPED:
                break
            command = command[1:]
        if not command or command[0].kind == "arith":
            return
        words = self._words(command)
        for token in command:
            for text in token.inner:
                self._nested(text, substitution=True)
        if not words:
            return
        simple = Simple(
            words=tuple(words),
            background=background,
            times=_product(self._loops),
            after_or=joined == "||",
            after_and=joined == "&&",
            conditional=self._ifs > 0,
            condition=self._in_condition,
            closes_lock=closes,
            piped=piped,
            depth=self._depth,
        )
        self._found.append(simple)
        text_within = shell_text(words)
        if text_within is not None:
            before = len(self._found)
            self._nested(text_within)
            self._found[before:] = [_as_within(each, simple) for each in self._found[before:]]

    def _in_background(self) -> None:
        """`done &`: the loop as a whole goes on in the background."""
        if self._found:
            self._found[-1] = _with_background(self._found[-1])

    def _nested(self, text: str, substitution: bool = False) -> None:
        if self._depth >= _DEEPEST:
            return
        times = _product(self._loops)
        for simple in simple_commands(text, self._variables, self._depth + (not substitution), times):
            if substitution:
                simple = msgspec.structs.replace(simple, substitution=True)
            self._found.append(simple)

    def _words(self, command: list[Token]) -> list[str]:
        """The words with variables put in; assignments before the command are remembered and left out."""
        words: list[str] = []
        for token in command:
            text = expand(token.text, self._variables)
            setting = re.match(r"([A-Za-z_]\w*)=(.*)\Z", text, re.DOTALL)
            exported = words[:1] in (["export"], ["readonly"], ["local"], ["declare"])
            if setting and (not words or exported):
                if not token.inner:
                    self._variables[setting[1]] = setting[2]
                if not exported:
                    continue
            words.append(text)
        return words

    def _loop(self, command: list[Token]) -> int | None:
        """How often a loop runs; the loop variable gets its first value."""
        if command[0].text != "for":
            return None
        if len(command) > 1 and command[1].kind == "arith":
            return self._counted(command[1].text)
        words = [expand(token.text, self._variables) for token in command[1:]]
        if len(words) < 2 or words[1] != "in":
            return None
        values: list[str] = []
        for word in words[2:]:
            span = re.fullmatch(r"(.*)\{(-?\d+)\.\.(-?\d+)\}(.*)", word)
            listed = re.fullmatch(r"([^{$]*)\{([^{}]*,[^{}]*)\}(.*)", word)
            sequence = re.fullmatch(r"\$\(\s*seq\s+(?:-w\s+)?(\d+)(?:\s+(\d+))?\s*\)", word)
            if span and abs(int(span[3]) - int(span[2])) < 10_000:
                step = 1 if int(span[3]) >= int(span[2]) else -1
                values += [f"{span[1]}{n}{span[4]}" for n in range(int(span[2]), int(span[3]) + step, step)]
            elif sequence:
                low, high = (int(sequence[1]), int(sequence[2])) if sequence[2] else (1, int(sequence[1]))
                values += [str(n) for n in range(low, min(high, low + 10_000) + 1)]
            elif listed:
                values += [listed[1] + part + listed[3] for part in listed[2].split(",")]
            elif "$" in word or "*" in word or "?" in word:
                return None
            else:
                values.append(word)
        if values:
            self._variables[words[0]] = values[0]
        return len(values)

    def _counted(self, text: str) -> int | None:
        """for ((i=0; i<4; i++)); a start that is not known is taken as 0: the most it can be."""
        found = re.fullmatch(r"\s*(\w+)\s*=\s*(\w+)\s*;\s*\1\s*(<=?)\s*\$?\{?(\w+)\}?\s*;.*", text, re.DOTALL)
        if not found:
            return None
        low = self._number(found[2])
        high = self._number(found[4])
        if high is None:
            return None
        self._variables[found[1]] = str(low or 0)
        return max(0, high - (low or 0) + (found[3] == "<="))

    def _number(self, text: str) -> int | None:
        value = self._variables.get(text, text)
        return int(value) if value.isdecimal() and len(value) < 7 else None


def expand(text: str, variables: Mapping[str, str]) -> str:
    """$NAME, ${NAME}, ${NAME:-default} from what is known; the rest stays."""

    def known(found: re.Match[str]) -> str:
        name = found[1] or found[2] or ""
        if name in variables:
            return variables[name]
        return found[3] if found[3] is not None else found[0]

    text = re.sub(r"\$(?:([A-Za-z_]\w*|\d)|\{([A-Za-z_]\w*|\d)(?::?-([^}]*))?\})", known, text)
    return text.replace("\x00", "$")


def shell_text(words: list[str]) -> str | None:
    """The text that `sh -c TEXT`, `su USER -c TEXT`, `flock FILE -c TEXT` or `eval TEXT` hand to a shell."""
    for place, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in ("sh", "bash", "dash", "ash", "zsh", "ksh", "su", "runuser", "flock", "script", "sg"):
            for option, value in zip(words[place + 1 :], words[place + 2 :], strict=False):
                if option == "--command" or re.fullmatch(r"-[A-Za-z]*c", option):
                    return value
                if not option.startswith("-") and name in ("sh", "bash", "dash", "ash", "zsh", "ksh"):
                    return None
            joined = next((option for option in words[place + 1 :] if option.startswith("--command=")), None)
            return joined.partition("=")[2] if joined else None
        if name == "eval" and place == 0:
            return " ".join(words[1:])
    return None


def _product(loops: list[int | None]) -> int | None:
    total = 1
    for times in loops:
        if times is None:
            return None
        total *= times
    return total


def _with_background(simple: Simple) -> Simple:
    return msgspec.structs.replace(simple, background=True)


def _as_within(inner: Simple, outer: Simple) -> Simple:
    """What holds for `sh -c TEXT` holds for the commands of TEXT."""
    return msgspec.structs.replace(
        inner,
        background=inner.background or outer.background,
        after_or=inner.after_or or outer.after_or,
        conditional=inner.conditional or outer.conditional,
        closes_lock=inner.closes_lock or outer.closes_lock,
        around=(outer.words, *inner.around),
    )
