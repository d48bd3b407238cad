"""The demo host's root filesystem: an overlay of the running system in which nothing of it is started or private.

Everything written goes to a tmpfs of limited size; the running system below is never changed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import console
from console.demo.enter import DEPLOY, DEPLOY_UID, OPERATORS, WORKTOP
from console.errors import DemoError

HOSTNAME = "wrk01"
SIZE = "1536M"  # of the tmpfs; a demo uses about 500 MB, most of it the job table
POSTGRES = "postgres"

# Hidden: what the outer machine would start, and what is a person's own.
EMPTIED = (
    "etc/systemd/system", "etc/systemd/user", "etc/cron.d", "etc/cron.hourly", "etc/cron.daily", "etc/cron.weekly",
    "etc/cron.monthly", "etc/worktop", "etc/sudoers.d", "etc/polkit-1/rules.d", "home", "root", "srv", "mnt", "media",
    "run", "var/log",
    "var/spool/cron/crontabs", "var/spool/anacron", "var/lib/systemd", "var/lib/postgresql", "var/mail", "var/tmp",
)  # fmt: skip
_MODES = {"root": 0o711}  # an interpreter may lie below; the others are as outside

# Units of the distribution that need hardware, a console or time a container does not have.
_MASKED = (
    "dev-hugepages.mount", "dev-mqueue.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount",
    "sys-fs-fuse-connections.mount", "proc-sys-fs-binfmt_misc.automount", "tmp.mount", "getty.target",
    "console-getty.service", "systemd-ask-password-console.path", "systemd-ask-password-wall.path",
    "systemd-binfmt.service", "systemd-hwdb-update.service", "systemd-journal-flush.service",
    "systemd-journal-catalog-update.service", "systemd-modules-load.service", "systemd-networkd.service",
    "systemd-pcrphase.service", "systemd-pcrphase-sysinit.service", "systemd-pstore.service",
    "systemd-resolved.service",
    "systemd-sysctl.service", "systemd-timesyncd.service", "systemd-tmpfiles-clean.timer", "systemd-udevd.service",
    "systemd-udev-trigger.service", "systemd-update-done.service", "ldconfig.service", "e2scrub_reap.service",
    "systemd-firstboot.service", "systemd-network-generator.service", "apt-daily.timer", "apt-daily-upgrade.timer",
)  # fmt: skip

# PID 1. On cgroup v1 the container's controllers are mounted read-only, which leaves every limit unenforced;
# systemd 256 and 257 boot there only when told so; 258 has dropped it.
_INIT = """\
#!/bin/sh
if [ -d /sys/fs/cgroup/memory ]; then
    for controller in memory pids cpu cpuacct cpu,cpuacct; do
        [ -d /sys/fs/cgroup/$controller ] && mount -o remount,bind,rw /sys/fs/cgroup/$controller
    done
    exec /lib/systemd/systemd SYSTEMD_CGROUP_ENABLE_LEGACY_FORCE=1
fi
exec /lib/systemd/systemd
"""
INIT_PATH = "/usr/local/sbin/worktop-demo-init"


def mount(base: Path) -> Path:
    """Mount the overlay in this mount namespace and return its root; DemoError says what was refused."""
    base.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={SIZE},mode=0755", "worktop-demo", str(base))
    upper, work, root = base / "upper", base / "work", base / "root"
    for path in (upper, work, root):
        path.mkdir()
    for name in EMPTIED:
        _empty(upper, name)
    _mount("-t", "overlay", "-o", f"lowerdir=/,upperdir={upper},workdir={work}", "worktop-demo", str(root))
    return root


def _mount(*arguments: str) -> None:
    why = try_mount(*arguments)
    if why:
        raise DemoError(f"mount {arguments[1]} on {arguments[-1]}", why, "a demo host needs a kernel that allows it")


def try_mount(*arguments: str) -> str:
    """Run mount(8); "" when it was done, else why not."""
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if not done.returncode:
        return ""
    return done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit status {done.returncode}"


def _empty(upper: Path, name: str) -> None:
    """An opaque directory of the upper layer: the lower one's entries are not seen. Its parents stay transparent."""
    path = upper
    for part in name.split("/"):
        path = path / part
        if not path.exists():
            path.mkdir()
            outer = Path("/") / path.relative_to(upper)
            if outer.is_dir():
                os.chown(path, outer.stat().st_uid, outer.stat().st_gid)
                path.chmod(outer.stat().st_mode & 0o7777)
    if name in _MODES:
        path.chmod(_MODES[name])
    os.setxattr(path, "trusted.overlay.opaque", b"y")


def stage(root: Path) -> None:
    """Make the overlay a machine of its own: name, users, nothing enabled but what the demo needs."""
    etc = root / "etc"
    write(etc / "hostname", f"{HOSTNAME}\n")
    write(etc / "hosts", f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n")
    write(etc / "machine-id", f"{os.urandom(16).hex()}\n")
    write(etc / "fstab", "")
    write(etc / "crontab", "SHELL=/bin/sh\nPATH=/usr/local/sbin:/usr/local/bin:/sbin:/bin:/usr/sbin:/usr/bin\n")
    write(etc / "environment", "")
    write(etc / "motd", f"This is {HOSTNAME}, worktop's demo host. Nothing here outlives it.\n")
    write(
        etc / "systemd/journald.conf.d/demo.conf", "[Journal]\nStorage=volatile\nRuntimeMaxUse=64M\nRateLimitBurst=0\n"
    )
    write(etc / "systemd/system.conf.d/demo.conf", "[Manager]\nDefaultTimeoutStopSec=10s\n")
    write(root / INIT_PATH.lstrip("/"), _INIT, 0o755)
    units = etc / "systemd/system"
    for name in _MASKED:
        link(units / name, "/dev/null")
    generators = etc / "systemd/system-generators"
    for generator in Path("/lib/systemd/system-generators").iterdir():
        link(generators / generator.name, "/dev/null")
    link(units / "default.target", "/lib/systemd/system/multi-user.target")
    link(units / "multi-user.target.wants/cron.service", "/lib/systemd/system/cron.service")
    # /tmp holds what is bound in; it is empty and volatile anyway
    link(etc / "tmpfiles.d/tmp.conf", "/dev/null")
    (root / "var/log/wtmp").touch()
    write(root / WORKTOP.lstrip("/"), worktop_script(), 0o755)
    _users(root)


def worktop_script() -> str:
    """The `worktop` command as pip would write it, for the code and the interpreter that run now."""
    source = Path(console.__file__).resolve().parent.parent
    start = f"#!{sys.executable}\n"
    if len(start) > 120 or any(character.isspace() for character in sys.executable):
        # the kernel takes neither: the shell reads the first two lines as a command, Python as a string
        start = f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} \"$0\" \"$@\"\n' '''\n"
    return f"{start}import sys\nsys.path.insert(0, {str(source)!r})\n" + (
        "from console.__main__ import main\nsys.exit(main())\n"
    )


def _users(root: Path) -> None:
    """deploy runs the fleet and the console, and is an operator; postgres runs the database. Nobody can log in with a
    password."""
    _account(root, DEPLOY, DEPLOY_UID, f"/home/{DEPLOY}", "/bin/bash")
    if not any(line.startswith(f"{POSTGRES}:") for line in (root / "etc/passwd").read_text().splitlines()):
        _account(root, POSTGRES, DEPLOY_UID + 1, "/var/lib/postgresql", "/bin/sh")
    group = root / "etc/group"
    lines = []
    for line in group.read_text().splitlines():
        name, password, gid, members = [*line.split(":"), "", "", ""][:4]
        if name == OPERATORS:
            continue
        if name == "systemd-journal":
            members = ",".join(filter(None, [*members.split(","), DEPLOY]))
        lines.append(":".join((name, password, gid, members)))
    lines.append(f"{OPERATORS}:x:{DEPLOY_UID + 2}:{DEPLOY}")
    write(group, "\n".join(lines) + "\n")
    home = root / f"home/{DEPLOY}"
    home.mkdir(mode=0o750)
    os.chown(home, DEPLOY_UID, DEPLOY_UID)


def _account(root: Path, name: str, uid: int, home: str, shell: str) -> None:
    rows = {
        "passwd": (f"{name}:x:{uid}:{uid}:{name}:{home}:{shell}", 2),
        "group": (f"{name}:x:{uid}:", 2),
        "shadow": (f"{name}:*:19000:0:99999:7:::", None),
    }
    for file, (row, number) in rows.items():
        path = root / "etc" / file
        kept = []
        for line in path.read_text().splitlines():
            fields = line.split(":")
            if fields[0] != name and (number is None or fields[number] != str(uid)):
                kept.append(line)
        path.write_text("\n".join([*kept, row]) + "\n")


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path.unlink()
    path.write_text(text)
    path.chmod(mode)


def link(path: Path, target: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(target)
