r"""Text of systemd's unit files: how a value is written so that systemd reads exactly it. Pure.

Rules (systemd.service(5) "COMMAND LINES", systemd.exec(5) "Environment", systemd.syntax(7), tried on systemd 252):
within quotes a backslash escapes, so \ is \\ and a quote is \"; % begins a specifier and is %%; in ExecStart $ begins a
variable and is $$; control characters are written \n, \t or \xNN. Words of plain characters need no quotes.
"""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z0-9_@+=:,./~-]+")
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\x07": "\\a", "\x08": "\\b", "\x0c": "\\f", "\x0b": "\\v"}


def exec_argument(text: str) -> str:
    """One word of ExecStart that the process receives as exactly `text`. NUL cannot be in an argument: ValueError."""
    return quoted(exec_literal(text), text)


def exec_literal(text: str) -> str:
    """The text with $ and % doubled and everything escaped, not yet quoted."""
    return _escaped(text).replace("%", "%%").replace("$", "$$")


def environment_assignment(name: str, value: str) -> str:
    """What stands behind Environment= so that the process has exactly NAME=value."""
    return quoted(_escaped(f"{name}={value}").replace("%", "%%"), f"{name}={value}")


def setting(value: str) -> str:
    """A path or text of a plain setting (WorkingDirectory=, StandardOutput=append:…): only % is special."""
    return value.replace("%", "%%")


def input_text(text: str) -> str:
    """StandardInputText='s value for exactly this text and a line end, which cron adds too."""
    escaped = _escaped(text.removesuffix("\n")).replace("%", "%%")
    return re.sub(r"^ | $", r"\\x20", escaped)


def environment_file_line(name: str, value: str) -> str:
    """A line of an EnvironmentFile: in double quotes a backslash escapes \\, \", $ and `."""
    if "\0" in value:
        raise ValueError("a NUL cannot be in an environment variable")
    return f'{name}="' + re.sub(r'([\\"$`])', r"\\\1", value) + '"\n'


def shell_text(text: str) -> str:
    """The text behind `sh -c` as one word of ExecStart: in single quotes, as people write it, where that can be."""
    return f"'{exec_literal(text)}'" if "'" not in text else exec_argument(text)


def quoted(escaped: str, text: str) -> str:
    """Quotes around what was escaped, when the text itself needs them; single ones around double ones."""
    if _PLAIN.fullmatch(text):
        return escaped
    if '"' in text and "'" not in text:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', '\\"') + '"'


def _escaped(text: str) -> str:
    if "\0" in text:
        raise ValueError("a NUL cannot be in an argument or an environment variable")
    text = text.replace("\\", "\\\\")
    return re.sub(r"[\x01-\x1f\x7f]", lambda found: _NAMED.get(found[0], f"\\x{ord(found[0]):02x}"), text)
