"""The values that steps are given: what an input takes, and placeholders in it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from console.config import time_span
from console.errors import ConfigError
from console.fleet.model import Value
from console.playbook.model import Setting, Settings

InputKind = Literal["text", "number", "truth", "texts", "span"]
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]{0,30})\}")
_EXPECTED = {
    "text": "a text",
    "number": "a whole number",
    "truth": "true or false",
    "texts": "a list of texts",
    "span": 'a time span such as "90s"',
}


class Input(Value, frozen=True, kw_only=True):
    """One input of an action or a check."""

    kind: InputKind = "text"
    required: bool = False
    choices: tuple[str, ...] = ()
    about: str = ""


def setting(value: Any) -> Setting | None:
    """A value of TOML as a setting; None where it is none."""
    if isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    return None


def takes(spec: Input, found: Setting) -> str:
    """What is wrong with a value for this input; "" when nothing is, or a placeholder decides."""
    if any(placeholders(found)):
        return ""
    if spec.choices:
        return "" if found in spec.choices else f"found {found!r}, expected one of {', '.join(spec.choices)}"
    wrong = f"found {found!r}, expected {_EXPECTED[spec.kind]}"
    number = isinstance(found, int) and not isinstance(found, bool)
    if spec.kind == "span":
        try:
            time_span(found if isinstance(found, str | int) else str(found), "")
        except ConfigError:
            return wrong
        return wrong if isinstance(found, bool | tuple) else ""
    right = {
        "text": isinstance(found, str) or number,
        "number": number,
        "truth": isinstance(found, bool),
        "texts": isinstance(found, tuple),
    }
    return "" if right[spec.kind] else wrong


def placeholders(found: Setting) -> Iterator[str]:
    """The names in the braces of a text."""
    for text in found if isinstance(found, tuple) else (found,):
        if isinstance(text, str):
            yield from _PLACEHOLDER.findall(text)


def filled(settings: Settings, values: Mapping[str, Setting]) -> Settings:
    """The settings with every placeholder in place. ConfigError: a value is not known (yet)."""
    return {name: _filled(found, values, name) for name, found in settings.items()}


def _filled(found: Setting, values: Mapping[str, Setting], name: str) -> Setting:
    for each in placeholders(found):
        if each not in values:
            raise ConfigError(name, f"{{{each}}} is not known yet", "an earlier step finds it out, or --set gives it")
    if isinstance(found, tuple):
        return tuple(str(_filled(each, values, name)) for each in found)
    if not isinstance(found, str):
        return found
    whole = _PLACEHOLDER.fullmatch(found)
    return values[whole[1]] if whole is not None else filled_text(found, values)


def filled_text(text: str, values: Mapping[str, Setting]) -> str:
    """Prose with the values that are known; other braces stay."""

    def put(match: re.Match[str]) -> str:
        found = values.get(match[1])
        return match[0] if found is None else " ".join(found) if isinstance(found, tuple) else str(found)

    return _PLACEHOLDER.sub(put, text)


def unknown_left_out(text: str) -> str:
    """A title whose values are not all known yet, as a person reads it: "Room for …"."""
    return _PLACEHOLDER.sub("…", text)
