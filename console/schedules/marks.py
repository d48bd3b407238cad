"""Text of a command in which the pieces that are not literal are marked: loop variables, variables of the environment
that stay references, and what cannot be known. Pure.

A mark is a private-use character, a name, the value, and an end. Marks never nest: a value that holds marks is kept
as it is instead of being wrapped again.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_LOOP, _REFERENCE, _UNKNOWN, _MIDDLE, _END = "\ue000", "\ue003", "\ue004", "\ue001", "\ue002"
_ALL = re.compile("[\ue000-\ue004]")
_PIECE = re.compile(
    "\ue000(?P<loop>[^\ue001]*)\ue001(?P<value>[^\ue002]*)\ue002"
    "|\ue003(?P<name>[^\ue001]*)\ue001(?P<known>[^\ue002]*)\ue002"
    "|\ue004(?P<unknown>[^\ue002]*)\ue002"
)
_LOOP_NAMES = {"q": "queue"}  # what people mean by the letter


def unmarked(text: str) -> str:
    """Text from outside, which cannot hold marks."""
    return _ALL.sub("\ufffd", text) if has_marks(text) else text


def has_marks(text: str) -> bool:
    return not text.isascii() and _ALL.search(text) is not None


def loop(name: str, value: str) -> str:
    """The value of a loop variable in one turn."""
    return value if has_marks(value) else f"{_LOOP}{name}{_MIDDLE}{value}{_END}"


def reference(name: str, value: str) -> str:
    """The value of a variable of the environment, kept as a reference to it."""
    return value if has_marks(value) else f"{_REFERENCE}{name}{_MIDDLE}{value}{_END}"


def unknown(source: str) -> str:
    """What only running it would tell; `source` is how it is written."""
    return f"{_UNKNOWN}{concrete(source)}{_END}"


def is_unknown(text: str) -> bool:
    return _UNKNOWN in text


def unknown_source(text: str) -> str:
    """How the unknown parts of a text are written, joined."""
    return " ".join(found["unknown"] for found in _PIECE.finditer(text) if found["unknown"] is not None)


def concrete(text: str) -> str:
    """With the values of this turn; what is unknown stands as it is written."""
    if text.isascii():
        return text
    return _replace(text, lambda _name, value: value, lambda _name, value: value, lambda source: source)


def spoken(text: str) -> str:
    """As text for another shell to read: marks stay where their value is one plain word."""

    def piece(found: re.Match[str]) -> str:
        value = found["value"] if found["loop"] is not None else found["known"]
        if value is None:
            return str(found["unknown"])
        return found[0] if re.fullmatch(r"[\w./:@%+,=-]+", value) else value

    return _PIECE.sub(piece, text) if has_marks(text) else text


def shown(text: str) -> str:
    """As a person writes it down: <n> for the loop variable n, $NAME for a variable of the environment."""
    if text.isascii():
        return text

    def placeholder(name: str, _value: str) -> str:
        return name if name.startswith("%") else f"<{_LOOP_NAMES.get(name, name)}>"

    return _replace(text, placeholder, lambda name, _value: f"${name}", lambda source: source)


def render(text: str, literal: Callable[[str], str], turn: str, variable: Callable[[str], str]) -> str:
    """Piece by piece: `literal` for plain text (and what is unknown), `turn` for loop variables, `variable`(name)."""
    out: list[str] = []
    place = 0
    for found in _PIECE.finditer(text):
        out.append(literal(text[place : found.start()]))
        if found["loop"] is not None:
            out.append(turn)
        elif found["name"] is not None:
            out.append(variable(found["name"]))
        else:
            plain = re.fullmatch(r"\$\{?([A-Za-z_]\w*)\}?", found["unknown"])
            out.append(variable(plain[1]) if plain else literal(found["unknown"]))
        place = found.end()
    out.append(literal(text[place:]))
    return "".join(out)


def turns(text: str) -> tuple[tuple[str, str], ...]:
    """The loop variables in a text with their values, in order."""
    if text.isascii():
        return ()
    return tuple((found["loop"], found["value"]) for found in _PIECE.finditer(text) if found["loop"] is not None)


def each_turn(text: str, change: Callable[[str, str], str]) -> str:
    """The text with each loop variable replaced by change(name, value), which may be a mark again."""
    if not has_marks(text):
        return text
    return _PIECE.sub(lambda found: found[0] if found["loop"] is None else change(found["loop"], found["value"]), text)


def references(text: str) -> tuple[str, ...]:
    """The variables of the environment a text refers to, in order."""
    if text.isascii():
        return ()
    return tuple(found["name"] for found in _PIECE.finditer(text) if found["name"] is not None)


def derived(text: str, change: Callable[[str], str]) -> str:
    """A change (basename, a suffix taken off) of the value; a single mark stays one around the new value."""
    found = _PIECE.fullmatch(text)
    if found and found["loop"] is not None:
        return loop(found["loop"], change(found["value"]))
    if found and found["unknown"] is not None:
        return text
    return text if is_unknown(text) else change(concrete(text) if not turns(text) else text)


def _replace(
    text: str,
    turn: Callable[[str, str], str],
    variable: Callable[[str, str], str],
    unseen: Callable[[str], str],
) -> str:
    if not has_marks(text):
        return text

    def piece(found: re.Match[str]) -> str:
        if found["loop"] is not None:
            return turn(found["loop"], found["value"])
        if found["name"] is not None:
            return variable(found["name"], found["known"])
        return unseen(found["unknown"])

    return _PIECE.sub(piece, text)
