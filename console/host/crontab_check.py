"""What the crontab(1) that is installed says of a crontab before it takes the place of another."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from console.errors import HostError
from console.host.children import output_of

_SECONDS = 10.0
_WHERE = re.compile(r'"[^"\n]*":\d+: ')  # the line that crontab counts to, which is not always that of the mistake


async def check_crontab(path: str, content: bytes, before: bytes | None) -> None:
    """HostError: cron would refuse this, and does not refuse what is there now; the reason is crontab's.

    Raises nothing where the crontab that is installed cannot check a file, or where there is none.
    """
    why = await _refusal(content)
    if why and not (before is not None and await _refusal(before)):
        raise HostError(f"check {path}", why, "nothing was installed")


async def _refusal(content: bytes) -> str:
    """Why crontab(1) would not take the file; "" when it would, or cannot say.

    cronie checks with -T. Debian's does from version 12 on with -n, by which cronie would name the host of a cluster:
    so it is asked for only where the usage calls it a dry run.
    """
    with tempfile.TemporaryDirectory(prefix="worktop-crontab-") as scratch:
        copy = Path(scratch) / "crontab"
        copy.write_bytes(content)
        said = await output_of(["crontab", "-T", str(copy)], _SECONDS)
        if b"usage" in said.err:
            if b"dry run" not in said.err:
                return ""
            said = await output_of(["crontab", "-n", str(copy)], _SECONDS)
        if not said.status:  # 0, or there is no crontab(1)
            return ""
        return _WHERE.sub("", said.err.decode("utf-8", "replace").strip().partition("\n")[0])
