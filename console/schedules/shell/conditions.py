"""test, [ and [[ on words that are known; what depends on the host stays open. Pure."""

from __future__ import annotations

import fnmatch
import re

from console.schedules import marks
from console.schedules.shell.expand import as_number

_NUMBERS = {"-eq", "-ne", "-lt", "-le", "-gt", "-ge"}


def outcome(arguments: list[str]) -> bool | None:
    """Whether the test holds; None when only the host could tell. `arguments`: without the closing bracket."""
    for joint, absorbing in (("||", True), ("-o", True), ("&&", False), ("-a", False)):
        if joint in arguments[1:-1]:
            at = arguments.index(joint, 1)
            left, right = outcome(arguments[:at]), outcome(arguments[at + 1 :])
            if left is absorbing or right is absorbing:
                return absorbing
            return None if left is None or right is None else not absorbing
    if arguments[:1] == ["!"]:
        inner = outcome(arguments[1:])
        return None if inner is None else not inner
    if arguments[:1] == ["("] and arguments[-1:] == [")"]:
        return outcome(arguments[1:-1])
    if len(arguments) == 3:
        return _compared(*arguments)
    if len(arguments) == 2 and arguments[0] in ("-z", "-n"):
        if marks.is_unknown(arguments[1]):
            return None
        return bool(marks.concrete(arguments[1])) is (arguments[0] == "-n")
    if len(arguments) == 1:
        return None if marks.is_unknown(arguments[0]) else bool(arguments[0])
    return False if not arguments else None


def _compared(left: str, sign: str, right: str) -> bool | None:
    if marks.is_unknown(left) or marks.is_unknown(right):
        return None
    if sign in _NUMBERS:
        first, second = as_number(left), as_number(right)
        if first is None or second is None:
            return None
        return {
            "-eq": first == second, "-ne": first != second, "-lt": first < second,
            "-le": first <= second, "-gt": first > second, "-ge": first >= second,
        }[sign]  # fmt: skip
    plain, pattern = marks.concrete(left), marks.concrete(right)
    if sign in ("=", "=="):
        return plain == pattern or fnmatch.fnmatchcase(plain, pattern)
    if sign == "!=":
        return not (plain == pattern or fnmatch.fnmatchcase(plain, pattern))
    return None


def threshold(arguments: tuple[str, ...]) -> int | None:
    """The count a test of live processes aims at: `[ N -lt 4 ]` and `[ N -ge 4 ]` mean four; None: no such test."""
    words = [word for word in arguments if word not in ("[", "]", "[[", "]]", "test", "!", "((", "))")]
    if len(words) != 3:
        return None
    left, sign, right = words
    sign = {"<": "-lt", "<=": "-le", ">": "-gt", ">=": "-ge", "==": "-eq", "=": "-eq", "!=": "-ne"}.get(sign, sign)
    if sign not in _NUMBERS:
        return None
    mirrored = {"-lt": "-gt", "-le": "-ge", "-gt": "-lt", "-ge": "-le"}
    if marks.is_unknown(right) and not marks.is_unknown(left):
        left, right, sign = right, left, mirrored.get(sign, sign)
    if re.search(r"\b(nproc|cpuinfo|getconf)\b", marks.unknown_source(left)):
        return None  # it asks for the processors of the host
    wanted = as_number(right) if marks.is_unknown(left) and not marks.is_unknown(right) else None
    if wanted is None:
        return None
    if sign in ("-le", "-gt"):
        wanted += 1
    return wanted if wanted > 0 else 1
