"""A carrier, and how options are told from the command they stand before. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from console.schedules.marks import concrete

SETTING = re.compile(r"[A-Za-z_]\w*=")


class Carrier(NamedTuple):
    """One carrier; `inner`: the words it runs, `text`: what it hands to a shell instead."""

    words: tuple[str, ...]  # its own
    inner: tuple[str, ...] = ()
    text: str | None = None
    user: str = ""
    group: str = ""
    login: bool = False  # a shell that reads the profile
    folder: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    lock: str = ""
    detached: bool = False  # the command goes on by itself
    terminal: bool = False  # the command gets a terminal
    output: str = ""
    nice: str = ""
    name: str = ""  # of the session, service or process it makes


def name_of(command: tuple[str, ...]) -> str:
    return concrete(command[0]).rpartition("/")[2] if command else ""


def split(command: tuple[str, ...], valued: frozenset[str], positional: int) -> tuple[dict[str, str], tuple[str, ...]]:
    """The options with their values ("" for a plain one), and the words of the command inside."""
    options: dict[str, str] = {}
    name = name_of(command)
    place = 1
    while place < len(command):
        word = command[place]
        if word == "--":
            place += 1
            break
        if word in valued:
            options[word] = command[place + 1] if place + 1 < len(command) else ""
            place += 2
        elif word.startswith("--"):
            key, _, value = word.partition("=")
            options[key] = value
            place += 1
        elif word.startswith("-") and len(word) > 1:
            place += _bundle(word, command[place + 1 : place + 2], valued, options)
        elif SETTING.match(word) and name in ("env", "sudo", "doas"):
            place += 1
        else:
            break
    return options, command[place + positional :]


def _bundle(word: str, following: tuple[str, ...], valued: frozenset[str], options: dict[str, str]) -> int:
    """One word of short options (-nu VALUE, -n5); how many words it takes."""
    for place, letter in enumerate(word[1:], start=1):
        option = f"-{letter}"
        if option not in valued:
            options[option] = ""
        elif place == len(word) - 1:
            options[option] = following[0] if following else ""
            return 2
        else:
            options[option] = word[place + 1 :]
            break
    return 1
