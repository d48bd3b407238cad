from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.schedules.crontab import parse, per_hour, split_percent, times

NASTY = b"""# * * * * * /srv/old/start.sh
MAILTO=""
  SHELL = "/bin/bash"
\t*/5\t*  * * *   echo   "a   b"
0 3 * * * date +\\%F > /tmp/x%first%second \\% third
@reboot sleep 20; start
0 0 1-31 * 1 x\x0cy \xe2\x80\xa8 z
5/15 * * * * no
@fortnightly no
* * * * *
caf\xe9=1
30 2 * * 5-7 caf\xe9
"""


def test_lines_are_read_as_cron_reads_them() -> None:
    crontab = parse(NASTY, system=False)
    assert [(entry.line, entry.schedule, entry.command) for entry in crontab.entries] == [
        (4, "*/5 * * * *", 'echo   "a   b"'),
        (5, "0 3 * * *", "date +%F > /tmp/x"),
        (6, "@reboot", "sleep 20; start"),
        (7, "0 0 1-31 * 1", "x\x0cy \u2028 z"),
        (12, "30 2 * * 5-7", "caf\ufffd"),
    ]
    assert crontab.entries[0].environment == (("MAILTO", ""), ("SHELL", "/bin/bash"))
    assert crontab.entries[1].stdin == "first\nsecond % third"
    assert [(mistake.line, mistake.why) for mistake in crontab.mistakes] == [
        (8, "'5/15' is no minute: a step needs a range"),
        (9, "@fortnightly is no schedule cron knows"),
        (10, "the command is missing"),
    ]


def test_a_system_crontab_names_the_user() -> None:
    (entry,) = parse(b"*/2 * * * * root /usr/local/sbin/check\n", system=True).entries
    assert (entry.user, entry.command) == ("root", "/usr/local/sbin/check")
    assert parse(b"* * * * * root\n", system=True).mistakes[0].why == "the command is missing"


def test_a_carriage_return_belongs_to_the_command() -> None:
    (entry,) = parse(b"* * * * * /bin/true\r\n\r\n", system=False).entries
    assert entry.command == "/bin/true\r"


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("a", "a", ""),
        ("a%b", "a", "b"),
        (r"a\%b", "a%b", ""),
        (r"a\\%b", "a\\%b".replace("%b", ""), "b"),
        (r"a\nb", r"a\nb", ""),
        ("%", "", ""),
        ("a%%b", "a", "\nb"),
    ],
)
def test_percent_signs(text: str, command: str, stdin: str) -> None:
    assert split_percent(text) == (command, stdin)


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
    found = times("0-30/10,45 8-10 * oct,12 sun,mon")
    assert found is not None and found.star
    assert sorted(found.minutes) == [0, 10, 20, 30, 45] and sorted(found.months) == [10, 12]
    assert sorted(found.weekdays) == [0, 1]
    seven = times("0 0 1 * 0-7")
    assert seven is not None and len(seven.weekdays) == 7 and not seven.star
    tail = times("0 0 * * mon#1")
    assert tail is not None and sorted(tail.weekdays) == [1], "what follows is passed over in silence"
    for wrong in (
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * monday *",
        "*/0 * * * *",
        "L * * * *",
        "1,,2 * * * *",
    ):
        with pytest.raises(ValueError, match="is no"):
            times(wrong)


@given(st.binary(), st.booleans())
def test_no_bytes_break_the_parser(data: bytes, system: bool) -> None:
    crontab = parse(data, system)
    numbers = [entry.line for entry in crontab.entries] + [mistake.line for mistake in crontab.mistakes]
    assert len(numbers) == len(set(numbers)) and all(1 <= number <= data.count(b"\n") + 1 for number in numbers)


@given(st.text(alphabet="a\\%b \n"))
def test_a_command_never_holds_a_percent_that_was_bare(text: str) -> None:
    command, _ = split_percent(text)
    assert command.count("%") <= text.count("\\%")
