"""Quotes, escapes, patterns and tildes of words. Pure."""

from __future__ import annotations

import fnmatch
import re


def tilde(text: str, home: str) -> str:
    found = re.match(r"~([\w.-]*)(?=/|\Z)", text)
    if not found:
        return text
    home = home if not found[1] else f"/home/{found[1]}"
    return home + text[found.end() :]


def unescape(text: str, quoted: bool = False) -> str:
    if "\\" not in text:
        return text
    if quoted:
        return re.sub(r'\\([$`"\\\n])', lambda found: "" if found[1] == "\n" else found[1], text)
    return re.sub(r"\\(.|\n)", lambda found: "" if found[1] == "\n" else found[1], text, flags=re.DOTALL)


def ansi_c(text: str) -> str:
    plain = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "v": "\v"}

    def one(found: re.Match[str]) -> str:
        escape = found[1]
        if escape[0] == "x" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        return plain.get(escape, escape)

    return re.sub(r"\\(x[0-9A-Fa-f]{1,2}|.)", one, text)


def trimmed(text: str, pattern: str, sign: str) -> str:
    """${NAME#pattern} and its kin, by trying every place."""
    places = range(len(text) + 1)
    if sign[0] == "#":
        fits = [place for place in places if fnmatch.fnmatchcase(text[:place], pattern)]
        return text[(max(fits) if sign == "##" else min(fits)) :] if fits else text
    fits = [place for place in places if fnmatch.fnmatchcase(text[place:], pattern)]
    return text[: (min(fits) if sign == "%%" else max(fits))] if fits else text
