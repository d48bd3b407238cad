"""The inventory of a host that is a folder: every source, what cron passes over, and what is no schedule at all."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from console.host import inventory as inventory_module
from console.host.inventory import Inventories
from console.host.rooted import Root
from console.schedules.inventory import Inventory, Listed
from console.schedules.model import Entry, Explained

LINES = 2000
SECONDS = 1.0
SLOWEST = 3.0  # times: on a core that is shared the same work takes more of it
PASSWD = """\
root:x:0:0:root:/root:/bin/bash
deploy:x:1000:1000::/home/deploy:/bin/sh
mail:x:8:8::/var/mail:/usr/sbin/nologin
"""
EVERYTHING: Mapping[str, str] = {
    "/etc/passwd": PASSWD,
    "/etc/debian_version": "12\n",
    "/etc/timezone": "Europe/Berlin\n",
    "/etc/crontab": "SHELL=/bin/sh\n25 6 * * * root cd / && run-parts --report /etc/cron.daily\n",
    "/etc/cron.d/images": "*/5 * * * * deploy /srv/images/run\n",
    "/etc/cron.d/images.old": "*/5 * * * * deploy /srv/images/run\n",
    "/etc/cron.d/.placeholder": "* * * * * root never\n",
    "/etc/cron.daily/rotate": "#!/bin/sh\n",
    "/etc/cron.weekly/orphan": "#!/bin/sh\n",
    "/etc/anacrontab": "PATH=/bin\n7 10 night.jobs /opt/night/run\n@monthly 45 month /opt/month\n1 x broken /bin/x\n",
    "/etc/rc.local": "#!/bin/sh\n/srv/old/start.sh\n",
    "/etc/supervisor/conf.d/resize.conf": "[program:resize]\ncommand=/srv/resize --slot %(process_num)02d ; two\n"
    "numprocs=2\nuser=deploy\ndirectory=/srv\n",
    "/etc/systemd/system/sync.timer": "[Timer]\nOnCalendar=hourly\n[Install]\nWantedBy=timers.target\n",
    "/etc/systemd/system/sync.service": "[Service]\nUser=deploy\nExecStart=-/srv/sync \\\n  --all\n",
    "/etc/systemd/system/sync.service.d/more.conf": "[Service]\nExecStart=\nExecStart=/srv/sync --some\n",
    "/home/deploy/.config/systemd/user/own.timer": "[Timer]\nOnBootSec=5min\nUnit=own.service\n",
    "/home/deploy/.config/systemd/user/own.service": "[Service]\nExecStart=/home/deploy/own\n",
    "/home/deploy/.pm2/dump.pm2": '[{"name":"api","pm_exec_path":"/srv/api.js","args":["-p","1"],"instances":3,'
    '"pm_cwd":"/srv"}]',
    "/var/spool/cron/crontabs/deploy": "30 2 * * * /srv/backup\n#0 5 * * 1 tar -zcf /var/backups/home.tgz /home/\n",
    "/var/spool/cron/crontabs/stranger": "* * * * * /bin/true\n",
}


def build(root: Path, files: Mapping[str, str | bytes]) -> Path:
    for path, content in files.items():
        file = root / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        if path.startswith(("/etc/cron.daily", "/etc/cron.weekly", "/etc/rc.local")):
            file.chmod(0o755)
        if path.startswith("/var/spool"):
            file.chmod(0o600)
    return root


def read(root: Path) -> Inventory:
    return asyncio.run(Inventories(Root(str(root)), None, tuple).read())


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Listed]:
    root = build(tmp_path_factory.mktemp("host"), EVERYTHING)
    wants = root / "etc/systemd/system/timers.target.wants"
    wants.mkdir()
    (wants / "sync.timer").symlink_to("/etc/systemd/system/sync.timer")
    (root / "etc/systemd/system/masked.timer").symlink_to("/dev/null")
    inventory = read(root)
    assert inventory.unread == () and inventory.zone == "Europe/Berlin" and inventory.host == ""
    return {each.name: each for each in inventory.entries}


def test_every_source_is_read(everything: dict[str, Listed]) -> None:
    assert set(everything) == {
        *("crontab:deploy:1", "crontab:deploy:2", "crontab:stranger:1"),
        *("/etc/crontab:2", "/etc/cron.d/images:1", "/etc/cron.d/images.old:1"),
        *("/etc/cron.daily/rotate", "/etc/cron.weekly/orphan", "/etc/rc.local"),
        *("/etc/anacrontab:2", "/etc/anacrontab:3", "/etc/anacrontab:4"),
        *("timer:sync.timer", "timer:deploy:own.timer", "supervisord:resize", "pm2:deploy:api"),
    }
    assert all(each.alive is None for each in everything.values())


def test_what_each_says(everything: dict[str, Listed]) -> None:
    nightly = everything["crontab:deploy:1"]
    assert nightly.explained.scheduled is not None
    assert nightly.explained.scheduled.words == "every day 02:30"
    assert nightly.explained.scheduled.zone == "Europe/Berlin" and len(nightly.explained.scheduled.next_runs) == 3
    assert not everything["crontab:deploy:2"].entry.active
    daily = everything["/etc/cron.daily/rotate"]
    assert (daily.entry.expression, daily.entry.command, daily.entry.user) == (
        *("25 6 * * *", "/etc/cron.daily/rotate", "root"),
    )
    night = everything["/etc/anacrontab:2"]
    assert (night.entry.command, night.entry.label) == ("/opt/night/run", "night.jobs")
    assert night.entry.environment == (("PATH", "/bin"),)
    assert night.explained.scheduled is not None and "every 7 days" in night.explained.scheduled.words
    sync = everything["timer:sync.timer"]
    assert (sync.entry.command, sync.entry.user, sync.entry.line) == ("/srv/sync --some", "deploy", 2)
    assert sync.entry.active and not everything["timer:deploy:own.timer"].entry.active
    (resize,) = everything["supervisord:resize"].explained.roles
    assert (resize.argv, resize.instances, resize.user, resize.workdir) == (
        *(("/srv/resize", "--slot", "<process_num>"), 2, "deploy", "/srv"),
    )
    (api,) = everything["pm2:deploy:api"].explained.roles
    assert (api.argv, api.instances) == (("node", "/srv/api.js", "-p", "1"), 3)


def test_what_nobody_runs_says_so(everything: dict[str, Listed]) -> None:
    assert "cron passes it over" in everything["/etc/cron.d/images.old:1"].ignored
    assert everything["/etc/cron.weekly/orphan"].ignored == "no line of cron or anacron runs /etc/cron.weekly"
    assert "there is no account stranger" in everything["crontab:stranger:1"].ignored
    assert everything["/etc/anacrontab:4"].entry.problems == ("x is no number of minutes",)
    for name in ("/etc/cron.d/images.old:1", "crontab:stranger:1"):
        assert everything[name].entry.problems


def test_files_that_are_no_schedules(tmp_path: Path) -> None:
    tabs = {"/etc/passwd": PASSWD, "/etc/cron.d/binary": b"\x7fELF\0\0\1", "/etc/cron.d/fine": "* * * * * root true\n"}
    root = build(tmp_path, tabs)
    with (root / "etc/cron.d/gigantic").open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    os.mkfifo(root / "etc/cron.d/fifo")
    (root / "etc/cron.d/dangling").symlink_to("/nowhere")
    started = time.monotonic()
    inventory = read(root)
    assert time.monotonic() - started < SECONDS
    said = {each.source.path: each.problem.why for each in inventory.unread}
    assert "NUL byte" in said["/etc/cron.d/binary"]
    assert "at most 1048576 are read" in said["/etc/cron.d/gigantic"]
    assert said["/etc/cron.d/fifo"] == "it is no regular file"
    assert said["/etc/cron.d/dangling"] == "it is not there"
    assert [each.name for each in inventory.entries] == ["/etc/cron.d/fine:1"]


def test_what_may_not_be_read_is_a_line_of_its_own(tmp_path: Path) -> None:
    root = build(tmp_path, {"/var/spool/cron/crontabs/deploy": "* * * * * true\n", "/etc/crontab": "\n"})
    (root / "etc/cron.d").mkdir()
    child = os.fork()
    if not child:  # as somebody who may not
        try:
            for path in (root / "var/spool/cron/crontabs", root / "etc/crontab", root / "etc/cron.d"):
                path.chmod(0)
            for parent in (root, *root.parents):
                if parent.stat().st_uid == 0 and parent.name.startswith(("pytest", "popen-gw", root.name)):
                    parent.chmod(0o755)
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            inventory = read(root)
            told = {each.source.path: each.problem for each in inventory.unread}
            wanted = {"/etc/crontab", "/etc/cron.d", "/var/spool/cron/crontabs"}
            assert set(told) == wanted, told
            assert all(each.why == "not permitted" and "more rights" in each.do for each in told.values())
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_no_cron_and_another_cron(tmp_path: Path) -> None:
    bare = build(tmp_path / "bare", {"/etc/crontab": "* * * * * root true\n", "/usr/sbin/sshd": ""})
    assert read(bare).notes == ("no cron is installed: nothing runs these lines",)
    rpm = {
        "/etc/redhat-release": "9\n",
        "/usr/sbin/crond": "",
        "/var/spool/cron/deploy": "CRON_TZ=Asia/Tokyo\n0 3 * * * true\n",
        "/etc/cron.d/foo.bak": "* * * * * root true\n",
        "/etc/cron.d/foo~": "* * * * * root true\n",
    }
    inventory = read(build(tmp_path / "rpm", rpm))
    assert inventory.dialect == "cronie" and inventory.notes == ()
    found = {each.name: each for each in inventory.entries}
    assert not found["/etc/cron.d/foo.bak:1"].ignored and found["/etc/cron.d/foo~:1"].ignored
    scheduled = found["crontab:deploy:2"].explained.scheduled
    assert scheduled is not None and scheduled.zone == "Asia/Tokyo"


def test_owner_and_mode_of_a_copy_are_doubts(tmp_path: Path) -> None:
    root = build(tmp_path, {"/etc/passwd": PASSWD, "/var/spool/cron/crontabs/deploy": "* * * * * true\n"})
    (root / "var/spool/cron/crontabs/deploy").chmod(0o644)
    (listed,) = read(root).entries
    assert not listed.ignored and not listed.entry.problems
    assert any("mode is 0644" in each and "a copy" in each for each in listed.explained.warnings)


def test_scripts_that_lead_in_circles_or_nowhere(tmp_path: Path) -> None:
    files = {
        "/var/spool/cron/crontabs/deploy": "* * * * * /srv/a\n* * * * * /srv/missing\n* * * * * /srv/elf\n",
        "/srv/a": "#!/bin/sh\n. /srv/b\n/srv/a\n",
        "/srv/b": "#!/bin/sh\n. /srv/a\n",
        "/srv/elf": b"\x7fELF\0\0",
    }
    inventory = read(build(tmp_path, files))
    assert len(inventory.entries) == 3


def test_a_line_that_is_not_understood_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = build(tmp_path, {"/etc/cron.d/jobs": "* * * * * root /srv/bad\n* * * * * root /srv/good\n"})
    real = inventory_module.explain

    def choke(entry: Entry, *others: Any, **options: Any) -> Explained:
        if entry.command.endswith("bad"):
            raise RecursionError("too deep")
        return real(entry, *others, **options)

    monkeypatch.setattr(inventory_module, "explain", choke)
    bad, good = read(root).entries
    assert bad.explained.kind == "none" and "RecursionError: too deep" in bad.explained.warnings[0]
    assert not any("defect" in warning for warning in good.explained.warnings)


def crowded(accounts: int, each: int) -> dict[str, str | bytes]:
    """A host of many small sites: what their owners run is alike, and no two lines are the same."""
    rows = [f"user{number}:x:{2000 + number}:100::/home/user{number}:/bin/sh" for number in range(accounts)]
    files: dict[str, str | bytes] = {"/etc/passwd": "\n".join(["root:x:0:0::/root:/bin/sh", *rows])}
    for number in range(accounts):
        home = f"/home/user{number}"
        lines = ["MAILTO=ops@example.org"]
        for line in range(each):
            commands = (
                f"cd {home}/site{line} && /usr/bin/php artisan schedule:run >> /dev/null 2>&1",
                f"/usr/bin/php -q {home}/public_html/cron.php --task {line} >/dev/null 2>&1",
                f"wget -q -O /dev/null https://site{line}.example.org/cron?user={number}",
                f"{home}/bin/job{line % 8}.sh --n {line} >> {home}/log 2>&1",
            )
            lines.append(f"{line % 60} {line % 24} * * {line % 7} {commands[line % 4]}")
        for script in range(8):
            text = f"#!/bin/sh\nset -e\ncd {home}\nexec /usr/bin/python3 job.py --slot {script}\n"
            files[f"{home}/bin/job{script}.sh"] = text
        files[f"/var/spool/cron/crontabs/user{number}"] = "\n".join([*lines, ""])
    return files


def test_two_thousand_lines_in_a_second(tmp_path: Path, figure: Callable[[str], None]) -> None:
    root = build(tmp_path, crowded(40, LINES // 40))
    inventories = Inventories(Root(str(root)), None, tuple)

    async def read() -> float:
        """Seconds; taken in here, as asyncio.run of Python 3.11 writes the repr of whatever it returns at its end."""
        started = time.process_time()
        entries = (await inventories.read()).entries
        seconds = time.process_time() - started
        assert len(entries) == LINES
        return seconds

    took = [asyncio.run(read()) for _ in range(2)]  # the second time only what has changed is read
    figure(f"inventory: {LINES} lines in {took[0]:.2f} s of CPU, again in {took[1]:.2f} s")
    assert took[0] <= SLOWEST * SECONDS
    assert took[1] <= took[0] / 2
