"""Strings that would harm a terminal or a markup parser, put into every text of a fleet."""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec

from console.fleet.model import Fleet
from tests.examples import example_fleet

HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "\x1b]52;c;aGVsbG8=\x07",
    "\x1b]0;title\x1b\\",
    "\x9b2J\x9d8;;http://x\x9c",
    "\x1bP+q544e\x1b\\\x1b_Gi=1\x1b\\",
    "[/red][bold][link=javascript:x]y[/",
    "a\nb\r\nc\td\x08\x07\x00\x7f",
    "\u202eright\u2066left\u2069\u200b\u2028\ufeff",
    "e\u0301\u0301\u0301\u0301\u0301 日本語 👩\u200d💻 🇩🇪 👍🏽",
    "\ud800 lone",
    "\\[x] $error {x} %s",
)
_KEEP = {
    "state",
    "severity",
    "verdict",
    "kind",
    "manager",
    "risk",
    "reversible",
    "late_finish",
}  # values of a closed set are no text from outside


def spoil(value: Any, text: str, name: str = "") -> Any:
    """The value with `text` at the end of every string in it; names of sources and closed sets stay."""
    if isinstance(value, str):
        return value if name in _KEEP else value + text
    if isinstance(value, tuple):
        return tuple(spoil(item, text, name) for item in value)
    if isinstance(value, msgspec.Struct):
        keep_name = type(value).__name__ == "SourceStatus"
        changes = {
            field: spoil(getattr(value, field), text, "state" if field == "name" and keep_name else field)
            for field in value.__struct_fields__
        }
        return type(value)(**changes)
    return value


def hostile_fleet(texts: tuple[str, ...] = HOSTILE) -> Fleet:
    """The example fleet with a hostile string in every text."""
    spoilt: Fleet = spoil(example_fleet(), "".join(texts))
    return spoilt


def harmless(text: str) -> bool:
    """There is nothing in it that a terminal would obey."""
    return not any(unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in text)
