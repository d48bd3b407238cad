from __future__ import annotations

import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.schedules.expression import parse, per_hour
from console.schedules.model import Dialect
from console.schedules.oncalendar import on_calendar
from console.schedules.runs import changes, next_runs
from console.schedules.words import words

UTC, BERLIN = ZoneInfo("UTC"), ZoneInfo("Europe/Berlin")
NOW = datetime.datetime(2026, 11, 29, 12, 0, tzinfo=datetime.UTC).timestamp()


@pytest.mark.parametrize(
    ("schedule", "yearly"),
    [
        ("* * * * *", 525600),
        ("*/7 * * * *", 9 * 24 * 365),
        ("0 3 * * *", 365),
        ("@weekly", 52.2),
        ("0 0 1-31 * 1", 365.25),  # either of them: every day
        ("30 4 1,15 * 5", 73.25),
        ("0 0 */2 * mon", 26.75),  # a star: both must hold
        ("0 9 * jan-mar mon", 13),
        ("0 0 29 2 *", 0.25),
    ],
)
def test_how_often_a_line_fires(schedule: str, yearly: float) -> None:
    assert (per_hour(schedule) or 0) * 365 * 24 == pytest.approx(yearly, rel=0.02, abs=0.3)


@pytest.mark.parametrize(
    "schedule", ["@reboot", "0 0 30 2 *", "0 0 * * fri-sun", "50-10 * * * *", "nonsense", "* * * *"]
)
def test_what_never_fires_by_the_clock(schedule: str) -> None:
    assert per_hour(schedule) is None


def test_the_rules_of_debians_fields() -> None:
    found = parse("0-30/10,45 8-10 * oct,12 sun,mon")
    assert found.both and not found.by_the_clock
    assert found.minutes == (0, 10, 20, 30, 45) and found.months == (10, 12) and found.weekdays == (0, 1)
    assert len(parse("0 0 1 * 0-7").weekdays) == 7 and not parse("0 0 1 * 0-7").both
    assert parse("0 0 *,15 * 1").both and not parse("0 0 15,* * 1").both, "the first character decides"
    assert parse("0 0 * * mon#1").remarks == ("day of week mon#1: cron passes over #1 in silence",)
    assert parse("0~30 * * * *").minutes == (0,)
    for wrong in (
        *("60 * * * *", "* 24 * * *", "* * 0 * *", "* * * monday *", "*/0 * * * *", "L * * * *", "1,,2 * * * *"),
        *("5/15 * * * *", "50-70 * * * *", "0-70/50 * * * *", "* mon * * *", "* * * * 8"),
    ):
        with pytest.raises(ValueError, match="is no"):
            parse(wrong)


@pytest.mark.parametrize("text", ["5 0 * * fri-sun", "0~30 * * * *", "0 0 * * mon#1", "*/2/3 * * * *"])
def test_what_debian_passes_over_cronie_refuses(text: str) -> None:
    assert parse(text, "debian").remarks
    with pytest.raises(ValueError, match="is no"):
        parse(text, "cronie")


@pytest.mark.parametrize("dialect", ["debian", "cronie"])
def test_what_both_pass_over(dialect: Dialect) -> None:
    found = parse("*5 * * * *", dialect)
    assert len(found.minutes) == 60 and found.remarks == ("minute *5: cron passes over 5 in silence",)


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("*/7 * * * *", "minute */7: counted anew in every hour, the last gap is 4 only"),
        ("*/90 * * * *", "minute */90: the step is longer than the hour, only minute 0 is left"),
        ("0 */5 * * *", "hour */5: counted anew in every day, the last gap is 4 only"),
        ("30 4 1,15 * 5", "day of month 1,15 and day of week 5: either is enough, not both"),
        ("0 0 */2 * mon", "day of month */2 and day of week mon: both must hold, because one begins with *"),
        ("0 0 31 2 *", "it never fires"),
    ],
)
def test_what_its_author_may_not_have_meant_is_said(text: str, remark: str) -> None:
    assert remark in parse(text).remarks


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("*/7 * * * *", "every hour at :00, :07, :14, … and :56"),
        ("17 * * * *", "every hour at :17"),
        ("@hourly", "every hour"),
        ("0 */12 * * *", "every day 00:00 and 12:00"),
        ("30 1-23/2 * * *", "every 2 hours at :30 from 01:30"),
        ("0 3 * * 1", "Mondays 03:00"),
        ("@daily", "every day 00:00"),
        ("@weekly", "Sundays 00:00"),
        ("0 7 1 jan,apr,jul,oct *", "1st of January, April, July and October 07:00"),
        ("30 4 1,15 * 5", "1st and 15th of the month and Fridays 04:30"),
        ("0 0 */16 * mon", "Mondays that are the 1st or 17th of the month 00:00"),
        ("0 9 1-7 * *", "1st to 7th of the month 09:00"),
        ("*/10 8-12,14-18 * * 1-5", "every 10 minutes from 08:00 to 12:59 and 14:00 to 18:59 on Mondays to Fridays"),
        ("15 6-13,18 * 1-3 sat,sun", "Saturdays and Sundays in January to March :15 of the hours 06 to 13 and 18"),
        ("* * 1 * *", "every minute on the 1st of the month"),
        ("0 0 31 2 *", "never"),
        ("@reboot", "once when cron starts after boot"),
    ],
)
def test_words(text: str, told: str) -> None:
    assert words(parse(text)) == told


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("* * * * *", ("*-*-* *:*:00 UTC",)),
        ("*/5 * * * *", ("*-*-* *:00/5:00 UTC",)),
        ("17 * * * *", ("*-*-* *:17:00 UTC",)),
        ("*/7 * * * *", ("*-*-* *:00,07,14,21,28,35,42,49,56:00 UTC",)),
        ("*/90 * * * *", ("*-*-* *:00:00 UTC",)),
        ("0 */12 * * *", ("*-*-* 00,12:00:00",)),
        ("0 */10 * * *", ("*-*-* 00,10,20:00:00",)),
        ("30 2 * * 0", ("Sun *-*-* 02:30:00",)),
        ("0 0 * * 7,1", ("Mon,Sun *-*-* 00:00:00",)),
        ("0 0 * * 1-5", ("Mon..Fri *-*-* 00:00:00",)),
        ("0 7 1 jan,apr,jul,oct *", ("*-01,04,07,10-01 07:00:00",)),
        ("@daily", ("*-*-* 00:00:00",)),
        ("@weekly", ("Sun *-*-* 00:00:00",)),
        ("30 4 1,15 * 5", ("*-*-01,15 04:30:00", "Fri *-*-* 04:30:00")),
        ("0 0 */16 * mon", ("Mon *-*-01,17 00:00:00",)),
        ("0 0 1-31 * 1", ("*-*-* 00:00:00",)),
        ("0 9 29 2 *", ("*-02-29 09:00:00",)),
        ("0 9 31-1 * mon", ("Mon *-*-* 09:00:00",)),
        ("0 0 * * fri-sun", ()),
        ("0 0 30 2 *", ()),
        ("@reboot", ()),
    ],
)
def test_on_calendar(text: str, lines: tuple[str, ...]) -> None:
    for zone in (UTC, BERLIN):
        translated = on_calendar(parse(text), zone, NOW)
        assert translated.lines == lines
        assert lines or translated.warnings


def test_the_zone_of_a_translation() -> None:
    adelaide, kolkata = ZoneInfo("Australia/Adelaide"), ZoneInfo("Asia/Kolkata")
    assert on_calendar(parse("17 * * * *"), adelaide, NOW).lines == ("*-*-* *:47:00 UTC",), "half an hour beside UTC"
    assert on_calendar(parse("17 * * * *"), kolkata, NOW).lines == ("*-*-* *:17:00",), "its clocks never change"
    assert on_calendar(parse("0 3 * * *"), BERLIN, NOW, foreign=True).lines == ("*-*-* 03:00:00 Europe/Berlin",)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (
            "30 2 * * *",
            "on 28 March 2027 02:00 to 03:00 is left out: cron makes up for it right after, a timer does not",
        ),
        ("*/20 2 * * *", "on 31 October 2027 02:00 to 03:00 comes twice: cron runs in both, a timer in the first"),
    ],
)
def test_what_differs_when_clocks_change_is_said(text: str, warning: str) -> None:
    found = on_calendar(parse(text), BERLIN, NOW).warnings
    assert len(found) == 1 and found[0].startswith(warning)
    assert not on_calendar(parse(text), UTC, NOW).warnings
    assert not on_calendar(parse(text.replace(" 2 ", " 4 ")), BERLIN, NOW).warnings


def test_the_next_runs_are_those_of_cron_when_clocks_change() -> None:
    before = datetime.datetime(2027, 3, 28, 0, 0, tzinfo=BERLIN).timestamp()
    fixed = [
        datetime.datetime.fromtimestamp(at, BERLIN).isoformat() for at in next_runs(parse("30 2 * * *"), BERLIN, before)
    ]
    assert fixed[:2] == ["2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00"]
    assert [changes(BERLIN, before)[0] - before, changes(UTC, before)] == [2 * 3600, ()]
    autumn = datetime.datetime(2027, 10, 31, 1, 50, tzinfo=BERLIN).timestamp()
    assert len({*next_runs(parse("*/20 2 * * *"), BERLIN, autumn, 6)}) == 6
    assert next_runs(parse("*/20 2 * * *"), BERLIN, autumn, 6)[-1] - autumn < 2.1 * 3600
    assert next_runs(parse("0 0 31 2 *"), BERLIN, before) == next_runs(parse("@reboot"), UTC, before) == ()


@given(st.text(alphabet="0123456789*/-,~#@ \tmonjafrisu", max_size=30))
def test_no_text_breaks_the_reading(text: str) -> None:
    try:
        found = parse(text)
    except ValueError:
        return
    assert words(found)
    assert bool(on_calendar(found, BERLIN, NOW).lines) == found.fires
