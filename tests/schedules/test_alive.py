"""Which processes came from which entry, in how many runs, and whether they pile up."""

from __future__ import annotations

import msgspec
import pytest

from console.fleet.model import Owner
from console.schedules.alive import Living, Seen, alive, in_runs, is_run_of
from console.schedules.model import Explained, Source
from tests.schedules import examples

NOW = 10_000.0
CRON = Owner(kind="cron", name="deploy")
WORKER = ("/usr/bin/python3", "/srv/reports/worker", "--queue", "reports")


def seen(pid: int, age: float, **options: object) -> Seen:
    made = Seen(pid=pid, started=NOW - age, argv=WORKER, user="deploy", owner=CRON, session=pid // 10)
    return msgspec.structs.replace(made, **options)


def reports() -> Explained:
    return examples.launcher().explained


@pytest.mark.parametrize(
    ("wanted", "argv", "same"),
    [
        (("./venv/bin/python", "s.py", "-q", "x"), ("/srv/venv/bin/python", "s.py", "-q", "x"), True),
        (("worker", "--id", "<n>"), ("/usr/bin/python3", "/usr/bin/worker", "--id", "7"), True),
        (
            ("rq", "worker", "<queue>", "--url", "$URL"),
            ("python", "/v/bin/rq", "worker", "pdf", "--url", "redis://"),
            True,
        ),
        (("w", "--name=<n>.x"), ("w", "--name=3.x"), True),
        (("w", "--name=<n>.x"), ("w", "--name=3.y"), False),
        (("w", "--id", "1"), ("w", "--id", "2"), False),
        (("w", "--id", "1"), ("w", "--id", "1", "--more"), False),
        (("w",), ("grep", "-r", "x", "y", "w"), False),
    ],
)
def test_arguments_with_what_is_not_known_before(wanted: tuple[str, ...], argv: tuple[str, ...], same: bool) -> None:
    assert is_run_of(wanted, argv) is same


def test_a_pile_is_counted_by_runs_and_grows() -> None:
    pile = [seen(100 + 10 * run + each, 40 + 60 * (3 - run)) for run in range(4) for each in range(3)]
    found = alive(reports(), Living(pile), 60.0, NOW, {NOW - 130: 6, NOW - 5: 12})
    assert (found.count, len(found.runs), found.per_run, found.growing) == (12, 4, 3, True)
    assert found.before == (130.0, 6)
    assert found.runs[0].pids == (100, 101, 102)


def test_one_run_or_an_old_one_is_no_pile() -> None:
    assert alive(reports(), Living([seen(1, 40), seen(2, 40)]), 60.0, NOW, {}).growing is False
    stood_still = [seen(10, 4000), seen(20, 3900)]
    assert alive(reports(), Living(stood_still), 60.0, NOW, {}).growing is False
    assert alive(reports(), Living([]), 60.0, NOW, {}).growing is False
    assert alive(reports(), Living(stood_still), None, NOW, {}).growing is None


def test_whose_it_is_is_told_by_the_owner_and_not_by_the_name() -> None:
    unit = Owner(kind="systemd", name="reports-worker@1.service")
    others = [
        seen(1, 10, owner=unit),
        seen(2, 10, owner=Owner(kind="cron", name="mail")),
        seen(3, 10, argv=("/srv/reports/worker", "--queue", "mail")),
        seen(4, 10, owner=Owner(kind="session", name="ops"), user="ops"),
    ]
    assert Living(others).of(reports()) == ((), "")
    (found,), evidence = Living([*others, seen(5, 10)]).of(reports())
    assert found.pid == 5 and "cron started" in evidence


def test_what_runs_below_the_shell_of_the_line_is_of_it() -> None:
    nightly = examples.nightly().explained
    shell = seen(7, 5, argv=("/bin/sh", "-c", "/srv/backup/nightly.sh"), lines=("/srv/backup/nightly.sh",))
    dump = seen(8, 5, argv=("/usr/bin/pg_dump",), lines=("/srv/backup/nightly.sh",))
    found, evidence = Living([shell, dump]).of(nightly)
    assert {each.pid for each in found} == {7, 8} and "shell that runs the line" in evidence


def test_a_timer_has_the_processes_of_its_unit() -> None:
    service = Owner(kind="systemd", name="apt-daily.service")
    explained = msgspec.structs.replace(
        reports(),
        entry=msgspec.structs.replace(reports().entry, source=Source(kind="timer", path="/x/apt-daily.timer")),
    )
    assert [each.pid for each in Living([seen(1, 1, owner=service), seen(2, 1)]).of(explained)[0]] == [1]


def test_without_sessions_what_started_together_is_one_run() -> None:
    runs = in_runs([seen(number, age, session=None) for number, age in ((1, 100), (2, 99), (3, 40), (4, 39))])
    assert [run.pids for run in runs] == [(1, 2), (3, 4)]
