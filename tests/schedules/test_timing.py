from __future__ import annotations

import datetime

from console.schedules.crontab import entries
from console.schedules.model import Dialect, Scheduled, Source
from console.schedules.timing import scheduled

NOW = datetime.datetime(2026, 11, 29, 12, 0, tzinfo=datetime.UTC).timestamp()
SOURCE = Source(kind="user", path="/var/spool/cron/deploy", user="deploy")


def of(data: bytes, dialect: Dialect, zone: str = "Europe/Berlin") -> Scheduled:
    found = scheduled(entries(data, SOURCE, dialect)[0], dialect, zone, NOW)
    assert found is not None
    return found


def test_the_zone_of_a_crontab_counts_where_its_cron_heeds_it() -> None:
    data = b"CRON_TZ=Asia/Tokyo\n0 3 * * * true\n"
    tokyo, berlin = of(data, "cronie"), of(data, "debian")
    assert tokyo.on_calendar == ("*-*-* 03:00:00 Asia/Tokyo",) and tokyo.zone == "Asia/Tokyo" and not tokyo.warnings
    assert berlin.on_calendar == ("*-*-* 03:00:00",) and berlin.zone == "Europe/Berlin"
    assert berlin.warnings == (
        "CRON_TZ=Asia/Tokyo does nothing: Debian's cron reads every line in the zone of the host",
    )
    assert datetime.datetime.fromtimestamp(tokyo.next_runs[0], datetime.UTC).hour == 18
    assert datetime.datetime.fromtimestamp(berlin.next_runs[0], datetime.UTC).hour == 2
