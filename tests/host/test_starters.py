"""Who else starts a role, from files; and the runs of a unit, from journal entries. Neither needs a host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from console.fleet.model import Role
from console.host.runs import MOST, read_runs
from console.host.starters import starters_of

MAIL = Role(name="mail", template="mail@.service", match=("worker --role mail",))
WORKER = "/usr/local/bin/worker --role mail"


def put(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        file = root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


async def found(root: Path) -> list[tuple[str, str]]:
    starters, problem = await starters_of(MAIL, ["root", "no-such-account"], False, root=str(root) + "/")
    assert problem == ""
    return [(starter.kind, starter.name) for starter in starters]


async def test_units_timers_supervisors_and_init_scripts(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "/etc/systemd/system/mail@.service": f"[Service]\nExecStart={WORKER}\n",
            "/etc/systemd/system/old-mail.service": f"[Service]\nExecStart=-{WORKER} \\\n  --quick --token hunter2\n",
            "/usr/lib/systemd/system/old-mail.service": "[Service]\nExecStart=/bin/true\n",
            "/usr/lib/systemd/system/ssh.service": "[Service]\nExecStart=/usr/sbin/sshd -D\n",
            "/etc/systemd/system/emptied.service": f"[Service]\nExecStart={WORKER}\nExecStart=\nExecStart=/bin/true\n",
            "/etc/systemd/system/launch.service": "[Service]\nType=oneshot\nExecStart=/srv/start.sh\n",
            "/etc/systemd/system/launch.timer": "[Timer]\nOnCalendar=hourly\n",
            "/etc/systemd/system/again.timer": "[Timer]\nOnCalendar=hourly\nUnit=mail@1.service\n",
            "/etc/systemd/system/other.timer": "[Timer]\nUnit=ssh.service\n",
            "/srv/start.sh": f"#!/bin/sh\ncd /srv\nnohup {WORKER} &\n",
            "/etc/supervisor/conf.d/mail.conf": f"[program:mail]\ncommand={WORKER} ; x\n[program:web]\ncommand=web\n",
            "/etc/supervisor/conf.d/broken.conf": "no section\n",
            "/root/.pm2/dump.pm2": json.dumps(
                [{"name": "m", "pm_exec_path": "/usr/local/bin/worker", "args": ["--role", "mail"]}, {"name": "w"}]
            ),
            "/etc/init.d/mail": f"#!/bin/sh\ncase $1 in start) {WORKER} & ;; esac\n",
            "/etc/rc.local": "#!/bin/sh\npgrep -f 'worker --role mail'\n",
        },
    )
    assert sorted(await found(tmp_path)) == [
        ("init script", "mail"),
        ("pm2", "m"),
        ("supervisord", "program:mail"),
        ("timer", "again.timer"),
        ("timer", "launch.timer"),
        ("unit", "old-mail.service"),
    ]
    starters, _ = await starters_of(MAIL, [], False, root=str(tmp_path))
    assert "hunter2" not in repr(starters)


async def test_nothing_there(tmp_path: Path) -> None:
    assert await found(tmp_path) == []


def entry(at: float, text: str, run: str = "", own: str = "", manager: bool = False) -> dict[str, Any]:
    said: dict[str, Any] = {"MESSAGE": text, "__REALTIME_TIMESTAMP": str(int(at * 1e6))}
    if manager:
        said |= {"UNIT": "mail@1.service", "_PID": "1", "INVOCATION_ID": run}
    return said | {"_SYSTEMD_INVOCATION_ID": own, "_PID": said.get("_PID", "812")}


def read(*entries: dict[str, Any]) -> Any:
    return read_runs(
        b"-- No entries --\n" + b"\n".join(json.dumps(each).encode() for each in entries) + b"\nnot JSON\n"
    )


def test_lines_belong_to_their_run() -> None:
    one, two = read(
        entry(1, "Started mail@1.service - Mail.", "a", manager=True),
        entry(2, "ready", own="a"),
        entry(3, "mail@1.service: Main process exited, code=exited, status=1/FAILURE", "a", manager=True),
        entry(4, "mail@1.service: Scheduled restart job, restart counter is at 1.", "b", manager=True),
        entry(5, "Started mail@1.service - Mail.", "b", manager=True),
        entry(6, "ready again", own="b"),
    )
    assert (one.invocation, one.began, one.ended, one.lines) == ("a", 1.0, 3.0, ("ready",))
    assert one.manager[-1].startswith("mail@1.service: Scheduled restart job")
    assert (two.invocation, two.began, two.ended, two.lines) == ("b", 5.0, None, ("ready again",))


def test_the_last_runs_are_kept() -> None:
    runs = read(*(entry(number, f"run {number}", own=f"{number}") for number in range(20)))
    assert [run.lines[0] for run in runs] == [f"run {number}" for number in range(20 - MOST, 20)]


_FIELD = st.none() | st.text(max_size=9) | st.lists(st.integers(-1, 300), max_size=4) | st.integers()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from([*entry(1, "", manager=True), "USER_UNIT"]), _FIELD), max_size=5))
def test_any_entries(entries: list[dict[str, Any]]) -> None:
    assert len(read(*entries)) <= MOST


def test_any_bytes() -> None:
    assert read_runs(b"{\xff}\n{}\n{\n") == ()
