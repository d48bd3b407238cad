"""The account's own crontab where it may not read the spool: through `crontab -e`, whose editor is a shell script.

`crontab -l` writes other bytes than the file has (a carriage return becomes \\r); the editor is given them as they are,
and what it leaves is checked, installed and told to cron by crontab(1) itself. The three lines that crontab(1) puts
above are no part of it.
"""

from __future__ import annotations

import os
import pwd
import tempfile
from pathlib import Path

import msgspec

from console.errors import HostError
from console.fleet.operations import FileRead, FileWritten
from console.host.children import Output, output_of
from console.host.crontab_check import check_crontab
from console.host.files import LONGEST, SPOOLS, digest, keep_copy, place_of

_SECONDS = 20.0
_CHANGED = 3  # status of the editor
# crontab installs what is newer than it was, by whole seconds
_EDITOR = f"""\
cmp -s "$3" "$1" || exit {_CHANGED}
cat "$2" > "$3" && touch -d +1minute "$3"
"""


def is_own(path: str) -> bool:
    """Whether it is the crontab of this account, which is not root. HostError: worktop does not touch this file."""
    place = place_of(path)
    return place.base in SPOOLS and os.geteuid() != 0 and place.name == pwd.getpwuid(os.geteuid()).pw_name


async def read_own(path: str) -> FileRead:
    """The crontab as it is now."""
    said = await _edit("cat")
    nothing = FileRead(path=path, mode=0o600, uid=os.geteuid(), gid=os.getegid())
    if said.status is None or (said.status and not said.out):
        return msgspec.structs.replace(nothing, problem=_reason(said))
    if b"no crontab for" in said.err and not said.out:
        return nothing
    if len(said.out) > LONGEST:
        return msgspec.structs.replace(nothing, problem=f"it is longer than {LONGEST} bytes")
    return msgspec.structs.replace(nothing, content=said.out, sha256=digest(said.out))


async def replace_own(path: str, expected: str, content: bytes | None) -> FileWritten:
    """Put `content` in its place, if it still is what was read: `expected` is its sha256.

    HostError: changed by somebody else since, or crontab(1) does not take it. Then everything is as it was.
    """
    what = f"write {path}"
    if content is None:
        raise HostError(what, "a crontab is not removed as a whole", "crontab -r does that")
    before = await read_own(path)
    if before.problem:
        raise HostError(what, before.problem)
    if before.sha256 != expected:
        raise HostError(what, "it was changed: by somebody else, since it was read", "nothing was done: plan it again")
    await check_crontab(path, content, None)  # crontab -e would ask what to do then
    kept = keep_copy(before) if before.content is not None else ""
    with tempfile.TemporaryDirectory(prefix="worktop-crontab-") as scratch:
        old, new, editor = (Path(scratch) / name for name in ("old", "new", "editor"))
        old.write_bytes(before.content or b"")
        new.write_bytes(content)
        editor.write_text(_EDITOR, encoding="ascii")
        said = await _edit(f"sh {editor} {old} {new}")
    if said.status != 0:
        raise HostError(what, _reason(said), "nothing was done")
    return FileWritten(path=path, sha256=digest(content), backup=kept, text=f"{path} replaced, copy in {kept}")


async def _edit(editor: str) -> Output:
    return await output_of(["env", "--unset=EDITOR", f"VISUAL={editor}", "crontab", "-e"], _SECONDS)


def _reason(said: Output) -> str:
    told = said.err.decode("utf-8", "replace").strip()
    if f"exited with status {_CHANGED}" in told:
        return "it was changed: by somebody else, since it was read"
    return told.rpartition("\n")[2][:300] or "crontab -e failed"
