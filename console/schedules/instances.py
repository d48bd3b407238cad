"""What differs between the instances of a role: their names, and what %i cannot carry. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from console.schedules import marks

_NAME = re.compile(r"[A-Za-z0-9:_.-]+")  # systemd would escape anything else in an instance's name


class Turn(NamedTuple):
    """What one start has that may differ: its words, its environment and its folder, marked."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    folder: str


class Instances(NamedTuple):
    """One template for all: %i stands for the loop variable that names them, others come from a file for each."""

    names: tuple[str, ...]
    turn: Turn
    variables: tuple[tuple[str, tuple[str, ...]], ...] = ()  # name, a value for each instance
    unnamed_folder: str = ""  # a folder that differs in a way no template can say


def instances(turns: list[Turn], count: int | None) -> Instances:
    """The template of starts that differ by loop variables only."""
    rows = [[found for text in _texts(turn) for found in marks.turns(text)] for turn in turns]
    first = turns[0]
    numbers = tuple(str(number) for number in range(1, min(count or 0, 1000) + 1))
    several_by_itself = len(turns) == 1 and count != 1  # what starts it numbers them
    if not rows[0] or several_by_itself or any(len(row) != len(rows[0]) for row in rows):
        return Instances(numbers, first)
    columns = [tuple(row[place][1] for row in rows) for place in range(len(rows[0]))]
    naming = next(
        (column for column in columns if len(set(column)) == len(column) and all(map(_NAME.fullmatch, column))), None
    )
    variables: dict[tuple[str, ...], str] = {}
    for place, column in enumerate(columns):
        if column != naming and column not in variables:
            name = re.sub(r"\W", "_", rows[0][place][0]).upper().strip("_") or "ITEM"
            variables[column] = name if name not in variables.values() else f"{name}_{place}"
    places = iter(range(len(columns)))

    def changed(name: str, value: str) -> str:
        column = columns[next(places)]
        return marks.loop(name, value) if column == naming else marks.reference(variables[column], value)

    argv = tuple(marks.each_turn(word, changed) for word in first.argv)
    environment = tuple((name, marks.each_turn(value, changed)) for name, value in first.environment)
    folder = marks.each_turn(first.folder, changed)
    return Instances(
        naming or numbers, Turn(argv, environment, folder), tuple((name, column) for column, name in variables.items()),
        folder if marks.references(folder) else "",
    )  # fmt: skip


def _texts(turn: Turn) -> list[str]:
    return [*turn.argv, *(value for _, value in turn.environment), turn.folder]
