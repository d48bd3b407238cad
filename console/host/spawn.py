"""Starts the host agent as a child. Only the standard library, so that the console can start it before it imports
anything that takes time: both load side by side."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile


def spawn(command: tuple[str, ...] = (), user_manager: bool = False) -> subprocess.Popen[bytes]:
    """Start the agent and return it; its stdin and stdout are pipes.

    `command`: what starts it, () for this worktop's own. `("sudo", "-n", "worktop", "agent")` and
    `("ssh", "HOST", "worktop", "agent")` work alike. It gets a session of its own, so that Ctrl-C in the terminal
    does not reach it and neither sudo nor ssh can ask anything on the terminal. stderr goes to an unnamed temporary
    file, `Popen.stderr`, whose last lines say why an agent died. OSError when the program is not there.
    """
    arguments = list(command) if command else [sys.executable, "-m", "console", "agent"]
    if user_manager and "--user" not in arguments:
        arguments.append("--user")
    environment = dict(os.environ)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100,PTH120
    if not command and os.path.basename(package) not in ("site-packages", "dist-packages"):  # noqa: PTH119
        # a checkout that is not installed: `python -m` would look in the working directory only
        path = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = package + (os.pathsep + path if path else "")
    said = tempfile.TemporaryFile()  # noqa: SIM115  it is read when the agent has died
    try:
        child = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment,
            start_new_session=True,
        )
    except OSError:
        said.close()
        raise
    child.stderr = said
    return child


def last_words(child: subprocess.Popen[bytes]) -> str:
    """The last line the agent wrote on stderr; "" when it wrote none."""
    if child.stderr is None or child.stderr.closed:
        return ""
    try:
        size = os.fstat(child.stderr.fileno()).st_size
        text = os.pread(child.stderr.fileno(), 4096, max(0, size - 4096)).decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
