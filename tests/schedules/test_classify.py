"""What the answers are made of: guards judged, witnesses that disagree, limits that hold, nothing guessed."""

from __future__ import annotations

import pytest

from console.fleet.capacity import start_limit
from console.fleet.model import Unit
from console.schedules.marks import reference
from console.schedules.model import Explained, LiveProcess, Source, Surroundings
from console.schedules.units import (
    RESTART_SECONDS,
    START_LIMIT,
    assignment,
    exec_line,
    memory_limit,
)
from tests.schedules.case import NOBODY_LOOKED, explained

SOURCE = Source(kind="user", path="/var/spool/cron/crontabs/app", user="app")
WORKER = ("/srv/app/worker", "--all")
GIB = 1024**3


def one(line: str, host: Surroundings = NOBODY_LOOKED, **scripts: str) -> Explained:
    """`scripts`: a_sh="…" is /srv/a.sh."""
    files = {f"/srv/{name.replace('_', '.')}": text for name, text in scripts.items()}
    (found,) = explained(f"{line}\n", SOURCE, files, host)
    return found


def live(*ages: float, argv: tuple[str, ...] = WORKER, peak: int = 0, memory: int = 0) -> Surroundings:
    processes = tuple(
        LiveProcess(pid=number, argv=argv, user="app", age=age, peak=peak) for number, age in enumerate(ages, start=2)
    )
    return Surroundings(processes=processes, memory=memory)


@pytest.mark.parametrize(
    ("guard", "works", "hazard"),
    [
        ("pgrep -x worker", True, ""),
        ("pgrep -f '[w]orker --all'", False, "guard_matches_itself"),
        ("pgrep -f 'other --all'", False, "guard_matches_itself"),
        ("pgrep -x some-other", False, "guard_pattern_mismatch"),
        ("pidof worker", True, ""),
        ("ps ax | grep -v grep | grep -q 'worker --all'", True, ""),
        ("ps ax | grep -v grep | grep -q 'process --all'", False, "guard_pattern_mismatch"),
        ("kill -0 $(cat /run/app.pid)", True, ""),
        ('pgrep -u "$USER" worker', False, "USER_unset_in_cron"),
    ],
)
def test_guards_are_judged(guard: str, works: bool, hazard: str) -> None:
    found = one(f"*/5 * * * * {guard} >/dev/null || /srv/app/worker --all &")
    assert (found.kind, found.roles[0].argv, found.roles[0].guard_works) == ("launcher", WORKER, works)
    assert not hazard or hazard in found.hazards
    assert ("pile_up" in found.hazards) is (not works and hazard != "guard_matches_itself")


def test_the_three_witnesses_speak() -> None:
    found = one("*/5 * * * * /srv/a.sh", live(400.0, 90.0), a_sh="#!/bin/sh\n/srv/app/worker --all &\n")
    assert [each.source for each in found.evidence] == ["script", "processes"]
    assert found.evidence[1].text.startswith("2 of /srv/app/worker --all alive, the oldest for ")
    assert "1 of /srv/app/worker --all are meant and 2 are alive: how many should there be?" in found.questions
    unlooked = one("*/5 * * * * /srv/app/worker --all &")
    assert unlooked.evidence[-1].text == "the live processes were not looked at"
    other = one("*/5 * * * * /srv/app/worker --all &", live(9.0, argv=("/srv/app/worker", "--one")))
    assert other.evidence[-1].text == "none of /srv/app/worker --all is alive now"


def test_a_job_that_outlives_its_period_is_asked_about() -> None:
    script = "#!/usr/bin/python3\nprint('done')\n"
    alive = live(900.0, argv=("/usr/bin/python3", "/srv/fetch.py"))
    found = one("*/5 * * * * /srv/fetch.py", alive, fetch_py=script)
    assert (found.kind, found.confidence) == ("short_cycle", "medium")
    assert any("does it end by itself?" in question for question in found.questions)
    assert one("*/5 * * * * /srv/fetch.py", live(20.0, argv=alive.processes[0].argv), fetch_py=script).questions == () \
        if alive.processes else False  # fmt: skip


@pytest.mark.parametrize("line", ["*/5 * * * * /srv/go", "*/5 * * * * sh /srv/go", "*/5 * * * * flock -n /l /srv/go"])
def test_what_is_not_there_is_not_guessed(line: str) -> None:
    found = one(line)
    assert (found.kind, found.confidence) == ("short_cycle", "low")
    assert any("/srv/go" in question for question in found.questions)


def test_a_launcher_in_another_language_is_said_to_be_one_nobody_can_follow() -> None:
    found = one("*/5 * * * * /srv/up.py", up_py="#!/usr/bin/python3\nimport subprocess\nsubprocess.Popen(['w'])\n")
    assert found.confidence == "low" and found.questions
    assert "/srv/up.py is no shell script and may start processes itself: it is not followed" in found.warnings


def test_secrets_go_into_a_file_only_root_reads() -> None:
    found = one("@reboot DB_PASSWORD='x \"y\"' MODE=fast /srv/app/worker --all &")
    (name, text), extras = found.units[0], {path: (content, mode) for path, content, mode in found.extras}
    assert name == "app-worker@.service" and "Environment=MODE=fast" in text
    assert "EnvironmentFile=/etc/app-worker.env" in text and "x" not in text.partition("PASSWORD")[2]
    assert extras["/etc/app-worker.env"] == ('DB_PASSWORD="x \\"y\\""\n', 0o600)
    assert "NoNewPrivileges=yes" in extras["app-worker@.service.d/10-hardening.conf"][0]


def test_instances_that_differ_in_more_than_a_name_get_a_file_each() -> None:
    found = one("@reboot for p in a:1 b:2; do /srv/app/worker --name ${p\\%:*} --port ${p#*:} & done")
    assert found.roles[0].names == ("a", "b")
    assert "ExecStart=/srv/app/worker --name %i --port ${P}" in found.units[0][1]
    files = {path: text for path, text, _ in found.extras}
    assert (files["/etc/app-worker-a.env"], files["/etc/app-worker-b.env"]) == ('P="1"\n', 'P="2"\n')


def test_memory_is_limited_by_what_was_measured() -> None:
    crontab = "@reboot /srv/app/worker --all &"
    limited = one(crontab, live(9.0, peak=100 * 1024**2, memory=8 * GIB))
    assert "\nMemoryMax=160M\n" in limited.units[0][1]
    assert "MemoryMax" not in one(crontab, live(9.0)).units[0][1]
    assert memory_limit(GIB, 4, 4 * GIB) == 0, "four of them would not fit"
    assert memory_limit(GIB, 2, 4 * GIB) == 3 * GIB // 2


def test_a_worker_that_dies_at_once_is_given_up_and_one_that_runs_for_a_minute_never() -> None:
    text = one("@reboot /srv/app/worker --all &").units[0][1]
    assert f"RestartSec={RESTART_SECONDS}s\n" in text and "StartLimitBurst=5\n" in text
    burst, interval = START_LIMIT
    unit = Unit(
        name="app-worker@1.service", restart="always", restart_sec=RESTART_SECONDS, start_limit_burst=burst,
        start_limit_interval=interval,
    )  # fmt: skip
    assert start_limit(unit).reachable and not start_limit(unit, 60.0).reachable


def test_references_and_plain_words_of_a_unit() -> None:
    words = ("/w", reference("URL", "x y"), f"--u={reference('URL', 'x')}", "100%", "$A", "", 'a "b"', 'it\'s "b"')
    assert exec_line(words) == '/w ${URL} --u=${URL} "100%%" "$$A" "" \'a "b"\' "it\'s \\"b\\""'
    assert assignment("A", "a b%") == '"A=a b%%"'
