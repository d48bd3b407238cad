"""What the database and the crontab of a demo host say before and after."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

from console.demo import fleet
from tests.conftest import DemoHost

CRONTAB = "/var/spool/cron/crontabs/deploy"
_NOTES = Path(__file__).with_suffix(".sql")


class Rows(NamedTuple):
    """What the database says of the jobs since the ledger was begun."""

    before: int  # rows there were
    there: int  # of those that are there still
    twice: int  # jobs that ended more than once
    stuck: int  # past their lease, now

    @property
    def told(self) -> str:
        return f"{self.there} of {self.before} there, {self.twice} ended twice, {self.stuck} stuck"


def begin_ledger(host: DemoHost) -> None:
    host.run(["psql", "--no-psqlrc", "-q", "-f", "-", fleet.DSN], user="deploy", input=_NOTES.read_text())


def rows(host: DemoHost, role: str = "reports") -> Rows:
    told = host.psql(
        "SELECT (SELECT count(*) FROM ledger_before), "
        "(SELECT count(*) FROM ledger_before JOIN worktop_jobs USING (id)), "
        "(SELECT count(*) FROM (SELECT id FROM ledger WHERE became = 'done' GROUP BY id HAVING count(*) > 1) twice), "
        f"(SELECT count(*) FROM worktop_jobs WHERE queue = '{role}' AND status = 'running' AND lease_expires < now())"
    )
    return Rows(*(int(each) for each in told.strip().split("|")))


def crontab(host: DemoHost) -> str:
    return host.run(["cat", CRONTAB]).stdout


def worktop(host: DemoHost, *arguments: str, timeout: float = 900.0) -> subprocess.CompletedProcess[str]:
    return host.run([host.worktop, "playbook", *arguments], check=False, timeout=timeout)
