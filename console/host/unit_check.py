"""What systemd says of a unit file before it is installed, and making it read its files again.

`systemd-analyze verify` reads a copy in a folder of its own, together with everything else the unit is made of. It
finds fault with what was there before too (a command that is not installed); only what is new is held against the file.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from console.errors import HostError
from console.host.children import output_of
from console.host.files import Place

_VERIFY_SECONDS = 15.0
_RELOAD_SECONDS = 90.0  # DefaultTimeoutStartSec: a host with thousands of units takes seconds
_SYSTEM = ("/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system")
_USER = ("/etc/systemd/user", "/run/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user")
_STUB = "[Service]\nExecStart=/bin/true\n"  # what a drop-in for no unit in particular is looked at with
_SHOWN = 3  # faults that are told


async def verify(place: Place, content: bytes, user_manager: bool) -> None:
    """HostError: systemd would not take the file, or would pass over a line of it; the reason is systemd's."""
    what = f"check {place.folder}/{place.name}"
    if not place.is_unit:
        raise HostError(what, "it is no unit file")
    found = await _said(place, content, user_manager, what)
    if found:
        known = await _said(place, None, user_manager, what)
        found = [line for line in found if line not in known]
    if found:
        more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise HostError(what, "; ".join(found[:_SHOWN])[:600] + more, "nothing was installed")


async def reload_manager(user_manager: bool) -> None:
    """systemctl daemon-reload. HostError: not permitted, not over in time."""
    which = ["--user"] if user_manager else []
    said = await output_of(["systemctl", *which, "--no-ask-password", "daemon-reload"], _RELOAD_SECONDS, 65536)
    if said.status != 0:
        why = said.err.decode("utf-8", "replace").strip().rpartition("\n")[2] or f"ended with status {said.status}"
        denied = "uthentication required" in why or "ccess denied" in why
        raise HostError("reload systemd", why.rstrip("."), "run the agent with sudo: agent in [host]" if denied else "")


async def _said(place: Place, content: bytes | None, user_manager: bool, what: str) -> list[str]:
    """Every line of systemd-analyze about the unit with this file, or without it (None)."""
    with tempfile.TemporaryDirectory(prefix="worktop-verify-") as scratch:
        unit = place.drop_ins.removesuffix(".d") or place.name
        fragment = Path(scratch) / unit
        whole = None if place.drop_ins else content
        fragment.write_bytes(_fragment(unit, place, user_manager) if whole is None else whole)
        if place.drop_ins and content is not None:
            drop_ins = Path(scratch) / place.drop_ins
            drop_ins.mkdir()
            (drop_ins / place.name).write_bytes(content)
        which = ["--user"] if user_manager else ["--system"]
        command = ["systemd-analyze", *which, "--man=no", "verify", str(fragment)]
        said = await output_of(command, _VERIFY_SECONDS, 1024 * 1024)
        lines = [line.strip() for line in said.err.decode("utf-8", "replace").splitlines()]
        lines = [line.removeprefix(f"{scratch}/") for line in lines if line]
        if said.status is None:
            raise HostError(what, lines[0] if lines else "systemd-analyze could not be run", "nothing was installed")
        if said.status and not lines:
            lines = [f"systemd-analyze ended with status {said.status}"]
        about = f"{place.drop_ins}/{place.name}:" if place.drop_ins else f"{place.name}:"
        return [line for line in lines if said.status or line.startswith(about)]


def _fragment(unit: str, place: Place, user_manager: bool) -> bytes:
    """The unit that a drop-in belongs to, as it is installed; of an instance its template."""
    stem, _, suffix = unit.rpartition(".")
    prefix, at, _ = stem.partition("@")
    names = (unit, f"{prefix}@.{suffix}") if at else (unit,)
    for folder in (place.base, *(_USER if user_manager else _SYSTEM)):
        for name in names:
            try:
                return (Path(folder) / name).read_bytes()
            except OSError:
                continue
    return _STUB.encode()
