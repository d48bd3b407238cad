"""What starts something beside crontabs: each form as its own program reads it, and never an exception."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from console.schedules.inventory import accepted, find, name_of, short_name
from console.schedules.model import Entry, Source
from console.schedules.others import (
    anacron_days,
    anacrontab,
    kept_by_systemd,
    parts_line,
    pm2,
    service_entry,
    supervisord,
    timer_entry,
    timer_expression,
    unit_text,
)
from tests.schedules import examples

ANACRON = Source(kind="anacron", path="/etc/anacrontab", user="root")
SUPERVISOR = Source(kind="supervisord", path="/etc/supervisord.conf")
PM2 = Source(kind="pm2", path="/home/deploy/.pm2/dump.pm2", user="deploy")
UNIT = Source(kind="unit", path="/etc/systemd/system/x.service")


def test_anacrontab() -> None:
    text = b"# c\nSHELL = /bin/sh\n\n7\t10\tnight\t/opt/start.sh --a  b\n@weekly 5 w /w\nsoon 1 x /x\n1 2 3\n"
    night, weekly, soon, short = anacrontab(text, ANACRON)
    assert (night.line, night.expression, night.label, night.command) == (
        4,
        "7",
        "night",
        "/opt/start.sh --a  b",
    )
    assert night.environment == (("SHELL", "/bin/sh"),) and not night.problems
    assert (weekly.expression, anacron_days(weekly.expression)) == ("@weekly", 7)
    assert soon.problems == ("soon is no period anacron knows",)
    assert short.problems == ("anacron wants period, delay, identifier and command",)


def test_units_with_drop_ins_and_continued_lines() -> None:
    text = (
        "[Service]\n# ExecStart=/no\nExecStart=@/usr/bin/env env \\\n  A=1 /srv/w\nUser=app\nEnvironment='A=b c' D=e\n"
    )
    service = unit_text((text, "[Service]\nUser=other\n"))
    entry = service_entry(UNIT, service)
    assert (entry.command, entry.user, entry.line) == ("/usr/bin/env env  A=1 /srv/w", "other", 3)
    assert entry.environment == (("A", "b c"), ("D", "e"))
    assert kept_by_systemd(entry, "x.service", "x.service").pattern == "systemd_unit"
    timer = unit_text(("[Timer]\nOnCalendar=daily\nOnCalendar=\nOnCalendar=hourly\nOnBootSec=1min\n",))
    assert timer_expression(timer) == "OnCalendar=hourly; OnBootSec=1min"
    assert timer_entry(Source(kind="timer", path="/x/y.timer"), timer, service).line == 2


def test_supervisord_and_pm2() -> None:
    text = "[program:a]\ncommand=/srv/a 'x y' %% ; comment\nenvironment=A=\"1\",B='2 3'\nautostart=false\n"
    (program,) = supervisord(text, SUPERVISOR)
    assert program.roles[0].argv == ("/srv/a", "x y", "%") and not program.entry.active
    assert program.roles[0].environment == (("A", "1"), ("B", "2 3"))
    assert supervisord("[program:a\ncommand", SUPERVISOR)[0].entry.problems
    assert pm2(b"no json", PM2)[0].entry.problems
    (app,) = pm2(b'[{"name":"j","pm_exec_path":"/s.js","exec_interpreter":"none","instances":"max"}]', PM2)
    assert (app.roles[0].argv, app.roles[0].instances) == (("/s.js",), None)


def test_the_line_that_runs_a_folder() -> None:
    system = Source(kind="system", path="/etc/crontab")
    cron = Entry(source=system, line=1, command="test -x /usr/sbin/anacron || { cd / && run-parts /etc/cron.daily; }")
    other = Entry(source=system, line=2, command="run-parts /etc/cron.daily-not")
    anacron = Entry(source=ANACRON, line=3, command="run-parts --report /etc/cron.daily")
    assert parts_line((other, cron), "/etc/cron.daily") is cron
    assert parts_line((cron, anacron), "/etc/cron.daily") is anacron
    assert parts_line((other,), "/etc/cron.daily") is None


def test_names_are_found_again() -> None:
    entries = examples.inventory().entries
    assert [short_name(each.name) for each in entries][:2] == ["deploy:4", "deploy:5"]
    for each in entries:
        assert find(entries, each.name) == (each,) and find(entries, short_name(each.name)) == (each,)
        assert name_of(each.entry) == each.name
    assert len(find(entries, "deploy")) == 4
    assert [each.name for each in find(entries, "/etc/cron.d/images.old")] == ["/etc/cron.d/images.old:2"]
    assert [each.role for each in find(entries, "reports")] == ["reports"]
    assert find(entries, "deploy:99") == ()
    assert accepted(entries).startswith("there are deploy:4, deploy:5") and accepted(()) == "there is none"


@given(st.text() | st.binary().map(lambda data: data.decode("utf-8", "replace")))
def test_no_text_is_an_exception(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    anacrontab(data, ANACRON)
    pm2(data, PM2)
    supervisord(text, SUPERVISOR)
    found = unit_text((text, "[Timer]\nOnCalendar=daily\n"))
    timer_entry(UNIT, found, found)
