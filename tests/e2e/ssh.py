"""A way into the demo host by SSH: its own sshd, with keys made for the test."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import DemoHost

_SSHD = "/usr/sbin/sshd"
_INSIDE = "/run/sshd"  # where sshd wants its empty folder, and what the tests put beside it
_CONFIG = f"""\
HostKey {_INSIDE}/host_key
AuthorizedKeysFile {_INSIDE}/authorized_keys
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
AcceptEnv LANG LC_* COLORTERM NO_COLOR
UsePAM yes
PrintMotd no
PidFile none
"""


def need_sshd() -> None:
    if shutil.which("ssh") and Path(_SSHD).exists():
        return
    reason = "needs openssh-client and openssh-server"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


class Ssh:
    """sshd in the demo host, and the options with which deploy gets in by key.

    The connection needs no network: ssh starts the sshd inside, once for each connection, as inetd would.
    """

    def __init__(self, host: DemoHost, folder: Path) -> None:
        key, known = folder / "key", folder / "known_hosts"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True, capture_output=True)
        make = f"""
            mkdir -p {_INSIDE} && chmod 755 {_INSIDE} && cd {_INSIDE}
            [ -s host_key ] || ssh-keygen -q -t ed25519 -N '' -f host_key
            cat > authorized_keys && chmod 644 authorized_keys
        """
        host.run(["sh", "-c", make], input=key.with_suffix(".pub").read_text())
        host.run(["sh", "-c", f"cat > {_INSIDE}/config"], input=_CONFIG)
        public = host.run(["cat", f"{_INSIDE}/host_key.pub"]).stdout
        known.write_text(f"wrk01 {public}")
        inside = shlex.join(host.exec_argv([_SSHD, "-i", "-f", f"{_INSIDE}/config"])).replace("%", "%%")
        options = {
            "ProxyCommand": inside,
            "UserKnownHostsFile": str(known),
            "GlobalKnownHostsFile": "none",
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "IdentityFile": str(key),
            "IdentityAgent": "none",
            "BatchMode": "yes",
            "SendEnv": "LANG LC_* COLORTERM NO_COLOR",
            "LogLevel": "ERROR",
        }
        self._options = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]

    def argv(self, *command: str, terminal: bool = False) -> list[str]:
        """ssh as deploy, running a command; with `terminal` on one of its own."""
        return ["ssh", "-F", "none", *self._options, *(["-tt"] if terminal else []), "deploy@wrk01", *command]
