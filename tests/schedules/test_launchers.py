from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from console.fleet.model import CronLine, Role
from console.schedules.carriers import open_one
from console.schedules.launchers import (
    GUARD_MATCHES_ITSELF,
    GUARD_NEVER_MATCHES,
    LOCK_RELEASED_EARLY,
    classify,
)
from console.schedules.model import Entry, ScriptText, Source

ROLE = Role(name="mail", template="mail-worker@.service", match=(r"worker(\.py)? --role mail",))


def reader(scripts: Mapping[str, str]) -> Callable[[str], ScriptText | None]:
    return lambda path: ScriptText(path=path, text=scripts[path]) if path in scripts else None


def line(command: str, schedule: str = "* * * * *", role: Role = ROLE, **scripts: str) -> CronLine:
    """`scripts`: a_sh="…" is /a.sh."""
    return classify(
        Entry(source=Source(kind="user", path=""), line=1, expression=schedule, command=command),
        owner="deploy",
        source="/var/spool/cron/crontabs/deploy",
        home="/home/deploy",
        read=reader({f"/{name.replace('_', '.')}": text for name, text in scripts.items()}),
        roles=[role, Role(name="other", match=("never --this",))],
    )


@pytest.mark.parametrize(
    ("command", "kind", "workers"),
    [
        ("nohup worker --role mail &", "launcher", 1),
        ("cd /srv && nohup ./venv/bin/python worker.py --role mail >> log 2>&1 &", "launcher", 1),
        ("for i in 1 2 3; do worker --role mail --slot $i & done", "launcher", 3),
        ("for i in $(seq 4); do worker --role mail & done", "launcher", 4),
        ("for i in $(seq 2 4); do worker --role mail & done", "launcher", 3),
        ("for i in {1..5}; do worker --role mail & done", "launcher", 5),
        ("for i in a b; do for j in 1 2; do worker --role mail & done; done", "launcher", 4),
        ("for i in $HOSTS; do worker --role mail & done", "launcher", None),
        ("worker --role mail & worker --role mail &", "launcher", 2),
        ("su - app -c 'worker --role mail &'", "launcher", 1),
        ("bash -lc 'cd /x; RAILS_ENV=p nohup worker --role mail &'", "launcher", 1),
        ("sudo -u app -- setsid worker --role mail", "launcher", 1),
        ("screen -dmS w bash -c 'worker --role mail'", "launcher", 1),
        ("tmux new-session -d -s w 'worker --role mail'", "launcher", 1),
        ("R=mail; worker --role $R &", "launcher", 1),
        ("flock -n /tmp/l worker --role mail", "watchdog", 1),
        ("run-one worker --role mail", "watchdog", 1),
        ("pgrep -f '[w]orker --role mail' || /start.sh", "watchdog", 1),
        ("kill -0 $(cat /run/w.pid) || worker --role mail &", "watchdog", 1),
        ("start-stop-daemon --start -b -m --pidfile /run/w.pid --exec /bin/worker -- --role mail", "watchdog", 1),
        ("timeout 50 worker --role mail", "periodic", 1),
        ("worker --role mail --once", "periodic", 1),
        ("systemctl restart mail-worker@1 mail-worker@2", "periodic", None),
    ],
)
def test_what_a_line_starts(command: str, kind: str, workers: int | None) -> None:
    found = line(command, start_sh="#!/bin/sh\nexec worker --role mail\n")
    assert (found.roles, found.kind, found.workers_per_tick) == (("mail",), kind, workers), found.evidence
    assert found.evidence


@pytest.mark.parametrize(
    "command",
    [
        "pg_dump app > /backup/app.dump",
        "pkill -f 'worker --role mail'",
        "pgrep -fc 'worker --role mail' | mail -s count ops",
        "grep 'worker --role mail' /var/log/syslog",
        "echo worker --role mail",
        "systemctl status mail-worker@1",
        "systemctl restart web-worker@1",
        "test -x /usr/sbin/logrotate && /usr/sbin/logrotate /etc/l.conf",
        "true # worker --role mail",
        "cat <<EOF\nworker --role mail\nEOF\ntrue",
    ],
)
def test_what_only_mentions_a_worker(command: str) -> None:
    found = line(command)
    assert (found.roles, found.kind, found.faults) == ((), "periodic", ()), found.evidence


def test_an_at_boot_line_says_what_it_starts() -> None:
    found = line("nohup worker --role mail &", "@reboot")
    assert (found.kind, found.roles, found.per_hour) == ("at-boot", ("mail",), None)


def test_scripts_are_followed_two_levels_with_their_arguments() -> None:
    found = line(
        "cd / && sh ./a.sh mail",
        a_sh='#!/bin/sh\nD=/\ncd "$D"\nfor i in 1 2; do ./b.sh "$1" & done\n',
        b_sh="#!/bin/sh\nexec worker --role $1\n",
    )
    assert (found.roles, found.workers_per_tick, found.kind) == (("mail",), 2, "launcher"), found.evidence
    assert any("in /b.sh" in sentence and "background" in sentence for sentence in found.evidence)


@pytest.mark.parametrize(
    ("command", "faults"),
    [
        ("pgrep -f 'worker --role mail' || worker --role mail &", (GUARD_MATCHES_ITSELF,)),
        ("if ! pgrep -f 'worker --role mail' > /dev/null; then worker --role mail & fi", (GUARD_MATCHES_ITSELF,)),
        ("pgrep -f '[w]orker --role mail' || worker --role mail &", (GUARD_MATCHES_ITSELF,)),
        ("pgrep -f '[w]orker --role mail' || /start.sh", ()),
        ("/guarded.sh", ()),
        ("pgrep -x worker || worker --role mail &", ()),
        ("pgrep -x mail-worker || worker --role mail &", (GUARD_NEVER_MATCHES,)),
        ("pgrep worker.py || python3 worker.py --role mail &", (GUARD_NEVER_MATCHES,)),
        ("pgrep -x a-very-long-worker || a-very-long-worker --role mail &", (GUARD_NEVER_MATCHES,)),
        ("pgrep a-very-long-wor || a-very-long-worker --role mail &", ()),
        ("pidof mail-worker || worker --role mail &", (GUARD_NEVER_MATCHES,)),
        ("pidof worker || worker --role mail &", ()),
        ("/mismatch.sh", (GUARD_NEVER_MATCHES,)),
        ("ps aux | grep 'worker --role mail' | grep -v grep || worker --role mail &", ()),
        ("flock -n /l worker --role mail", ()),
        ("flock -n /l sh -c 'worker --role mail &'", ()),  # the worker inherits the lock and holds it
        ("flock -n -o /l sh -c 'worker --role mail &'", (LOCK_RELEASED_EARLY,)),
        ("flock -no /l /bg.sh", (LOCK_RELEASED_EARLY,)),
        ("flock -n /l /bg.sh", ()),
        ("flock -n /l sudo -b worker --role mail", (LOCK_RELEASED_EARLY,)),
        ("flock -n /l tmux new -d 'worker --role mail'", (LOCK_RELEASED_EARLY,)),
        ("flock -n -o /l worker --role mail", ()),
    ],
)
def test_faults_of_guards(command: str, faults: tuple[str, ...]) -> None:
    role = Role(name="mail", match=(r"worker(\.py)? --role mail",))
    found = line(
        command,
        role=role,
        start_sh="#!/bin/sh\nexec worker --role mail\n",
        guarded_sh="#!/bin/sh\npgrep -f 'worker --role mail' || worker --role mail &\n",
        mismatch_sh="#!/bin/sh\nN=`pgrep -f process.php | wc -l`\n[ $N -ge 5 ] && exit 0\nworker --role mail &\n",
        bg_sh="#!/bin/sh\nfor i in 1 2; do worker --role mail & done\n",
    )
    assert found.faults == faults, found.evidence
    assert found.roles == ("mail",)
    assert len(found.evidence) > len(faults)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nohup nice -n 5 ionice -c3 worker a", ("worker", "a")),
        ("env -u X A=1 B=2 worker", ("worker",)),
        ("timeout -k 5 1h worker", ("worker",)),
        ("flock -n -E 0 /l worker", ("worker",)),
        ("sudo -nu app worker", ("worker",)),
        ("sh -e /x.sh arg", ("/x.sh", "arg")),
        (". /x.sh", ("/x.sh",)),
        ("exec -a name worker", ("worker",)),
        ("systemd-run --user --unit w worker", ("worker",)),
        ("worker", ("worker",)),
        ("nohup", ()),
    ],
)
def test_carriers_are_opened(text: str, words: tuple[str, ...]) -> None:
    command = tuple(text.split())
    while (carrier := open_one(command)) is not None:
        command = carrier.inner
    assert command == words


pieces = [*"abc'\"`$(){}[];&|<>#\\\n \t", "for", " in ", "do", "done", "if ", "then", "fi", "pgrep -f ", "flock "]
pieces += ["worker --role mail", "sh -c ", "nohup ", "$((", "))", "<<E", "${", "seq 3", " & ", "sudo -u ", "-o"]
commands = st.lists(st.sampled_from([*pieces, "case", "esac", "while "])).map("".join)


@settings(max_examples=200, deadline=None)
@given(commands)
@example("a & pgrep -f '[worker --role mail")
def test_no_command_breaks_the_reading(command: str) -> None:
    found = line(command, start_sh=command)
    assert found.evidence and found.command == command


@settings(deadline=None)
@given(st.text())
def test_no_text_breaks_the_reading(command: str) -> None:
    assert line(command).evidence
