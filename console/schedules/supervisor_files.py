"""The files of other supervisors: supervisord's configuration and pm2's dump. Pure."""

from __future__ import annotations

import configparser
import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec


class Program(NamedTuple):
    """A [program:x] of supervisord, as it is written."""

    name: str
    values: Mapping[str, str]
    line: int  # of its heading

    @property
    def starts(self) -> bool:
        """With supervisord itself."""
        return self.values.get("autostart", "true").lower() in ("true", "yes", "on", "1")


class Pm2App(msgspec.Struct):
    """One process of pm2's dump, or one app of an ecosystem file."""

    name: str = ""
    pm_exec_path: str = ""
    script: str = ""
    args: list[str] | str | None = None
    node_args: list[str] | str | None = None
    interpreter_args: list[str] | str | None = None
    exec_interpreter: str = ""
    interpreter: str = ""
    instances: int | str | None = None
    pm_cwd: str = ""
    cwd: str = ""
    env: dict[str, object] = {}
    pm_out_log_path: str = ""

    @property
    def argv(self) -> tuple[str, ...]:
        """Interpreter, its options, script and arguments."""
        script = self.pm_exec_path or self.script
        interpreter = self.exec_interpreter or self.interpreter or _INTERPRETERS.get(script.rpartition(".")[2], "none")
        before = () if interpreter == "none" else (interpreter,)
        options = listed(self.node_args) + listed(self.interpreter_args)
        return (*before, *options, script, *listed(self.args))

    @property
    def count(self) -> int | None:
        """None: as many as the host has processors, or not known."""
        if self.instances is None:
            return 1
        number = int(self.instances) if str(self.instances).isdigit() else 0
        return number or None


class _Ecosystem(msgspec.Struct):
    apps: list[Pm2App]


_INTERPRETERS = {
    "js": "node", "mjs": "node", "cjs": "node", "py": "python3", "rb": "ruby", "php": "php", "pl": "perl", "sh": "bash",
}  # fmt: skip


def supervisord_programs(text: str) -> tuple[tuple[Program, ...], str]:
    """Every [program:x] with a command, and the files it includes ("" for none). ValueError: it means nothing."""
    parser = configparser.RawConfigParser(strict=False, inline_comment_prefixes=(";",), comment_prefixes=("#", ";"))
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise ValueError(" ".join(str(error).split())) from None
    lines = [line.strip() for line in text.split("\n")]
    found = []
    for section in parser.sections():
        values, heading = dict(parser.items(section)), f"[{section}]"
        if section.startswith("program:") and values.get("command"):
            line = lines.index(heading) + 1 if heading in lines else 0
            found.append(Program(section.partition(":")[2].strip(), values, line))
    included = dict(parser.items("include")).get("files", "") if parser.has_section("include") else ""
    return tuple(found), included


def assignments(text: str) -> tuple[tuple[str, str], ...]:
    """KEY="value",KEY2=value: supervisord's environment, its %(names)s as they are."""
    found = re.findall(r"""\s*([\w.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^,\n]*))\s*,?""", text)
    return tuple((key, double or single or bare.strip()) for key, double, single, bare in found)


def pm2_apps(data: bytes | str) -> list[Pm2App]:
    """The processes of a dump, or the apps of an ecosystem file in JSON. ValueError: it is neither."""
    try:
        found = msgspec.json.decode(data, type=_Ecosystem | list[Pm2App], strict=False)
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise ValueError(str(error)) from None
    return found.apps if isinstance(found, _Ecosystem) else found


def listed(value: list[str] | str | None) -> tuple[str, ...]:
    return tuple(value.split()) if isinstance(value, str) else tuple(value or ())
