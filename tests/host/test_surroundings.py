"""What the kernel tells of a live worker, of this very process."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from console.host.surroundings import live_surroundings


def test_this_process() -> None:
    live = live_surroundings(os.getpid())
    assert live is not None
    assert live.folder == str(Path.cwd()) and live.nice == os.nice(0)
    umask = os.umask(0o077)
    os.umask(umask)
    assert live.umask == umask
    limits = {name: (soft, hard) for name, soft, hard in live.limits}
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert limits["NOFILE"] == (soft, hard) and limits["CPU"] == (None, None)
    assert dict(live.environment).get("PATH")
    assert len(live.groups) >= len(set(os.getgroups())) - 1


def test_a_process_that_is_gone() -> None:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    assert live_surroundings(child) is None
