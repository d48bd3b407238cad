"""What `worktop schedules translate --out DIR` writes: unit files as they are installed, and a README.md for people."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from console.errors import ConfigError
from console.schedules.inventory import Translated, short_name
from console.schedules.model import Explained
from console.text import mask
from console.view.schedules import said

_UNITS = "/etc/systemd/system"


def write(folder: Path, offered: Sequence[Translated]) -> tuple[Path, ...]:
    """Write all of it; ConfigError when one of the files is there already, and then none is written."""
    files = {name: (text, 0o644) for each in offered for name, text in each.listed.explained.units}
    files |= {_place(path): (text, mode) for each in offered for path, text, mode in each.listed.explained.extras}
    files["README.md"] = ("\n\n".join(_readme(each) for each in offered) + "\n", 0o644)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        there = [name for name in files if (folder / name).exists()]
        if there:
            raise ConfigError(
                f"--out {folder}", f"{', '.join(sorted(there)[:4])} is there already", "name an empty folder"
            )
        for name, (text, mode) in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            handle = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise ConfigError(
            f"--out {folder}", f"cannot be written ({error.strerror or error})", "name another folder"
        ) from None
    return tuple(folder / name for name in files)


def _readme(told: Translated) -> str:
    """What, why, how to install it and how to go back."""
    listed, explained = told.listed, told.listed.explained
    entry = listed.entry
    text = entry.raw.decode("utf-8", "replace") or entry.command
    where = f"{entry.source.path}, line {entry.line}" if entry.line else entry.source.path
    parts = [
        f"# {short_name(listed.name)}: {explained.kind}",
        f"From {where}:\n\n    {mask(text)}",
        "## Why",
        _items([f"{each.text} ({each.source})" for each in explained.evidence]) or "nothing more is known",
    ]
    if warnings := said(listed):
        parts += ["## Look at this first", _items(warnings)]
    if explained.questions:
        parts += ["## To be decided", _items(explained.questions)]
    parts += ["## Checked", _items([*told.held, *(f"NOT: {text}" for text in told.failed)])]
    if told.lost:
        parts += ["## What a live worker has, and the unit does not give", _items(told.lost)]
    parts += ["## Install", _install(told), "## Go back", _back(told)]
    return "\n\n".join(part for part in parts if part)


def _items(lines: Sequence[str]) -> str:
    return "\n".join(f"- {mask(line)}" for line in lines)


def _install(told: Translated) -> str:
    explained = told.listed.explained
    units = " ".join(shlex.quote(name) for name, _ in explained.units)
    lines = [f"install -m 0644 {units} {_UNITS}/"]
    for path, _, mode in explained.extras:
        name, target = shlex.quote(_place(path)), shlex.quote(_target(path))
        lines.append(f"install -D -m {mode:04o} {name} {target}")
    lines.append("systemctl daemon-reload")
    lines.append(f"worktop schedules disable {shlex.quote(short_name(told.listed.name))}")
    lines.append(f"systemctl enable --now {_started(explained)}")
    return "Nothing was installed. As root, in this folder:\n\n" + "\n".join(f"    {line}" for line in lines)


def _back(told: Translated) -> str:
    explained = told.listed.explained
    units = " ".join(shlex.quote(f"{_UNITS}/{name}") for name, _ in explained.units)
    extras = "".join(f" {shlex.quote(_target(path))}" for path, _, _ in explained.extras)
    lines = [
        f"systemctl disable --now {_started(explained)}",
        f"rm {units}{extras}",
        "systemctl daemon-reload",
        f"worktop schedules restore {shlex.quote(short_name(told.listed.name))}",
    ]
    return "\n".join(f"    {line}" for line in lines)


def _place(path: str) -> str:
    """Where an extra file lies in the folder: a drop-in in that of its unit, any other by its name."""
    return path.rpartition("/")[2] if path.startswith("/") else path


def _target(path: str) -> str:
    return path if path.startswith("/") else f"{_UNITS}/{path}"


def _started(explained: Explained) -> str:
    """What is enabled: the timer, or the instances of the template."""
    timers = [name for name, _ in explained.units if name.endswith(".timer")]
    if timers:
        return " ".join(shlex.quote(name) for name in timers)
    found: list[str] = []
    for name, _ in explained.units:
        prefix, at, rest = name.partition("@")
        if not at:
            found.append(shlex.quote(name))
            continue
        role = next((role for role in explained.roles if role.name == prefix), None)
        names = role.names if role is not None and role.names else ()
        instances = names or tuple(str(number) for number in range(1, ((role.instances if role else None) or 1) + 1))
        found += [shlex.quote(f"{prefix}@{instance}{rest}") for instance in instances]
    return " ".join(found)
