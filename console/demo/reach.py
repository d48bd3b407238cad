"""What an unprivileged user inside needs and the overlay does not show: the checkout, the interpreter, its packages.

They are usable inside at the same path, read-only, wherever they lie outside: on another mount, under /tmp, in a home
that is hidden, with modes that only their owner can read. Nothing is changed outside.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import console
from console.demo.overlay import EMPTIED, try_mount

_HIDDEN = [Path("/") / name for name in (*EMPTIED, "tmp", "dev", "proc", "sys")]


def binds(base: Path, root: Path) -> list[tuple[Path, Path]]:
    """(what, where inside) to be bound read-only; the mounts this needs are made below `base`."""
    found = []
    for number, path in enumerate(_needed()):
        closed = _is_closed(path)
        if not closed and _is_shown(path, root):
            continue
        found.append((_opened(base / f"open-{number}", path) if closed else path, path))
        for part in path.parents:
            inside = root / part.relative_to("/")
            if inside.is_dir() and not inside.stat().st_mode & 0o001:
                inside.chmod(inside.stat().st_mode | 0o001)  # in the upper layer
    return found


def _needed() -> list[Path]:
    """The folders that are not the distribution's, without those that lie in another of them."""
    needed = {Path(console.__file__).resolve().parent.parent, Path(sys.prefix), Path(sys.base_prefix).resolve()}
    needed.add(Path(sys.executable).resolve().parent.parent)
    needed.update(Path(entry) for entry in sys.path if entry.endswith("-packages") and Path(entry).is_dir())
    needed -= {Path("/"), Path("/usr")}
    usr = Path("/usr/lib")
    return [path for path in sorted(needed) if not any(top in path.parents for top in (*needed, usr))]


def _is_shown(path: Path, root: Path) -> bool:
    """Whether the overlay shows this folder to everybody: it is on the root filesystem and under nothing hidden."""
    if any(top == path or top in path.parents for top in _HIDDEN):
        return False
    if any(not part.stat().st_mode & 0o001 for part in (path, *path.parents)):
        return False
    return _mount_point(path) == Path("/") and (root / path.relative_to("/")).is_dir()


def _mount_point(path: Path) -> Path:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = {Path(line.split()[4].encode().decode("unicode_escape")) for line in lines}
    return next(candidate for candidate in (path, *path.parents) if candidate in points)


def _is_closed(path: Path) -> bool:
    """Whether others may not read it. A umask closes everything alike, so the upper levels are looked at."""
    for entry in _upper_levels(path, 3):
        mode = entry.lstat().st_mode
        if not entry.is_symlink() and not (mode & 0o004 and (mode & 0o001 or not entry.is_dir())):
            return True
    return False


def _upper_levels(path: Path, levels: int) -> Iterator[Path]:
    yield path
    if levels and path.is_dir() and not path.is_symlink():
        for entry in path.iterdir():
            if entry.name != ".git":
                yield from _upper_levels(entry, levels - 1)


def _opened(where: Path, path: Path) -> Path:
    """The folder as everybody may read it: an overlay of it, with other modes in its upper layer."""
    upper, work, merged = where / "upper", where / "work", where / "merged"
    for part in (upper, work, merged):
        part.mkdir(parents=True)
    lower = str(path).replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")
    options = f"lowerdir={lower},upperdir={upper},workdir={work}"
    # with metacopy the contents stay where they are; a kernel that does not know it copies them
    if try_mount("-t", "overlay", "-o", f"{options},metacopy=on", "worktop-demo", str(merged)):
        why = try_mount("-t", "overlay", "-o", options, "worktop-demo", str(merged))
        if why:
            return path
    subprocess.run(["chmod", "--recursive", "o+rX", str(merged)], capture_output=True)
    return merged
