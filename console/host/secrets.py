"""Secrets masked before they cross the agent's pipe: in unit files and in command lines."""

from __future__ import annotations

import re

from console.text import MASK, is_secret_value, mask

_LONGEST_COMMAND = 4000  # characters of a command line that are looked at and told

# a setting as one quoted word, as in Environment="NAME=value" and in commands
_QUOTED_SETTING = re.compile(r"""(["'])([A-Za-z_][\w.-]*)=((?:\\(?:.|\n)|(?!\1)[^\\\n])*)(\1|$)""", re.MULTILINE)
# SetCredential=NAME:value; whatever the name is, the value is one
_CREDENTIAL = re.compile(r"^(\s*SetCredential(?:Encrypted)?=[^:\n]*:)((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)


def masked_file(text: str) -> str:
    """A unit file with the values of telling names masked; everything else stays as it is written."""
    return masked_text(_CREDENTIAL.sub(rf"\1{MASK}", text))


def masked_text(text: str) -> str:
    """As console.text.mask, also for NAME=value that is quoted as a whole."""

    def setting(found: re.Match[str]) -> str:
        quote, name, value, end = found.groups()
        telling = mask(f"{name}=x") != f"{name}=x"
        return f"{quote}{name}={MASK if telling and value else value}{end}"

    return mask(_QUOTED_SETTING.sub(setting, text))


def masked_command(command: tuple[str, ...]) -> tuple[str, ...]:
    """The arguments, cut to a length that can be shown, with secrets masked also where an option stands alone."""
    kept: list[str] = []
    room = _LONGEST_COMMAND
    for argument in command:
        if room <= 0:
            kept.append("…")
            break
        kept.append(argument if len(argument) <= room else argument[:room] + "…")
        room -= len(argument) + 1
    line = " ".join(kept)
    if masked_text(line) == line:
        return tuple(kept)
    found: list[str] = []
    for place, argument in enumerate(kept):
        before = kept[place - 1] if place else ""
        name, equals, _ = argument.partition("=")
        telling = equals and " " not in name and mask(f"{name}=x") != f"{name}=x"
        shown = f"{name}={MASK}" if telling else masked_text(argument)
        if is_secret_value(before, argument):
            shown = MASK
        found.append(shown)
    return tuple(found)
