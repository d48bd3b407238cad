"""Who owns a process: the situations that were seen on a real Debian 12 with systemd 252, and never an exception."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.fleet.model import CronLine
from console.fleet.ownership import AncestorFacts, ProcessFacts, owner_of, unit_of

CRON = "/system.slice/cron.service"
ACCOUNTS = {0: "root", 1500: "deploy"}
LINE = CronLine(
    owner="deploy", source="/var/spool/cron/crontabs/deploy", line=4, schedule="* * * * *", command="x", roles=("mail",)
)


def ancestors(*facts: tuple[int, str, str]) -> tuple[AncestorFacts, ...]:
    return tuple(AncestorFacts(pid=pid, name=name, command=tuple(command.split())) for pid, name, command in facts)


INIT = (1, "systemd", "/sbin/init")
SITUATIONS = {
    "launcher with nohup and &": (
        {"ppid": 1, "cgroup": CRON, "login_uid": 1500, "session": 44, "marks": ("LOGNAME", "MAILTO")},
        ("cron", "deploy", "crontab of deploy, line 4"),
        "its login uid is deploy (1500)",
    ),
    "flock in the foreground": (
        {
            "ppid": 90,
            "cgroup": CRON,
            "login_uid": 1500,
            "ancestors": ancestors((90, "flock", "flock -n l w"), (89, "sh", "sh -c x"), (88, "cron", "CRON"), INIT),
        },
        ("cron", "deploy", "crontab of deploy, line 4"),
        "cron (pid 88) is its ancestor",
    ),
    "tmux started by cron": (
        {
            "ppid": 70,
            "cgroup": CRON,
            "login_uid": 1500,
            "ancestors": ancestors((70, "tmux: server", "tmux new -d"), INIT),
        },
        ("screen", "tmux", ""),
        "window of tmux",
    ),
    "su - of root's crontab": (
        {
            "ppid": 1,
            "cgroup": "/user.slice/user-1500.slice/session-5.scope",
            "login_uid": 0,
            "session": 5,
            "session_service": "su-l",
            "role": "batch",
            "marks": ("XDG_SESSION_CLASS", "XDG_SESSION_ID"),
        },
        ("cron", "root", "/etc/cron.d/batch, line 2"),
        "opened by su-l",
    ),
    "cron with pam_systemd": (
        {
            "ppid": 1,
            "cgroup": "/user.slice/user-1500.slice/session-27.scope",
            "login_uid": 1500,
            "session": 27,
            "session_service": "crond",
        },
        ("cron", "deploy", "crontab of deploy, line 4"),
        "opened by crond",
    ),
    "runuser of root's crontab": (
        {
            "ppid": 60,
            "cgroup": CRON,
            "login_uid": 0,
            "role": "batch",
            "ancestors": ancestors((60, "runuser", "runuser -u")),
        },
        ("cron", "root", "/etc/cron.d/batch, line 2"),
        "crontab of root",
    ),
    "a unit": (
        {"ppid": 1, "cgroup": "/system.slice/system-mail.slice/mail@1.service", "marks": ("INVOCATION_ID",)},
        ("systemd", "mail@1.service", ""),
        "its cgroup belongs to mail@1.service",
    ),
    "a unit of a user manager": (
        {"cgroup": "/user.slice/user-1500.slice/user@1500.service/app.slice/uw.service", "ancestors": ancestors(INIT)},
        ("systemd-user", "uw.service", "user manager of deploy"),
        "user manager of deploy",
    ),
    "supervisord in its unit": (
        {
            "ppid": 50,
            "cgroup": "/system.slice/supervisor.service",
            "ancestors": ancestors((50, "supervisord", "/usr/bin/python3 /usr/bin/supervisord -n"), INIT),
            "marks": ("SUPERVISOR_ENABLED",),
        },
        ("supervisord", "", ""),
        "restarts what dies",
    ),
    "pm2": (
        {"cgroup": CRON, "ancestors": ancestors((40, "PM2 v7.0.4: God", "PM2 v7.0.4: God Daemon (/home/node/.pm2)"))},
        ("pm2", "", ""),
        "God Daemon",
    ),
    "forever": (
        {"cgroup": "/", "ancestors": ancestors((41, "node", "node /usr/lib/node_modules/forever/bin/monitor x.js"))},
        ("forever", "", ""),
        "forever's monitor",
    ),
    "screen": (
        {"cgroup": "/", "ancestors": ancestors((42, "screen", "SCREEN -dmS bot"), INIT), "marks": ("STY",)},
        ("screen", "screen", ""),
        "window of screen",
    ),
    "runit": (
        {"cgroup": "/system.slice/runit.service", "ancestors": ancestors((43, "runsv", "runsv mail"), INIT)},
        ("runit", "mail", ""),
        "runsv mail",
    ),
    "docker": (
        {"cgroup": "/system.slice/docker-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope"},
        ("container", "0123456789ab", ""),
        "container's",
    ),
    "kubernetes": (
        {"cgroup": "/kubepods.slice/kubepods-besteffort.slice/cri-containerd-abc.scope"},
        ("container", "cri-containerd-abc.scope", ""),
        "container's",
    ),
    "nohup over ssh": (
        {
            "ppid": 1,
            "cgroup": "/user.slice/user-1500.slice/session-3.scope",
            "login_uid": 1500,
            "session_service": "sshd",
            "marks": ("SSH_CONNECTION",),
        },
        ("session", "deploy", "session 3"),
        "nothing starts it again",
    ),
    "su - by a person": (
        {
            "ppid": 1,
            "cgroup": "/user.slice/user-0.slice/session-3.scope",
            "login_uid": 1500,
            "uid": 0,
            "session_service": "sshd",
            "marks": ("SSH_CONNECTION",),
        },
        ("session", "deploy", "session 3"),
        "login uid is deploy",
    ),
    "no systemd, a login": (
        {"ppid": 9, "cgroup": "/", "ancestors": ancestors((9, "bash", "-bash"), (8, "sshd", "sshd: deploy"))},
        ("session", "deploy", ""),
        "sshd (pid 8)",
    ),
    "no systemd, cron": (
        {
            "ppid": 9,
            "cgroup": "",
            "login_uid": 1500,
            "ancestors": ancestors((9, "sh", "sh -c x"), (8, "cron", "cron -f")),
        },
        ("cron", "deploy", "crontab of deploy, line 4"),
        "cron (pid 8)",
    ),
    "an orphan nobody knows": (
        {"ppid": 1, "cgroup": "/init.scope", "marks": ("TMUX", "PM2_HOME")},
        ("unknown", "", ""),
        "a hint, no proof",
    ),
    "a cgroup that cannot be read": ({"cgroup": None}, ("unknown", "", ""), "could not be read"),
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_situation(name: str) -> None:
    facts, (kind, owner, detail), sentence = SITUATIONS[name]
    process = ProcessFacts(**{"pid": 100, "uid": 1500, "user": "deploy", "role": "mail", **facts})  # type: ignore[arg-type]
    batch = CronLine(
        owner="root",
        source="/etc/cron.d/batch",
        line=2,
        schedule="@hourly",
        command="su - deploy -c w",
        roles=("batch",),
    )
    found = owner_of(process, (LINE, batch), ACCOUNTS)
    assert (found.kind, found.name, found.detail) == (kind, owner, detail)
    assert any(sentence in each for each in found.evidence), found.evidence


def test_a_unit_that_is_not_the_roles_is_said() -> None:
    process = ProcessFacts(pid=1, cgroup="/system.slice/web.service", role="mail", role_template="mail@.service")
    assert any("not a unit of the role" in sentence for sentence in owner_of(process).evidence)


def test_an_environment_is_a_hint_only_where_it_says_something_else() -> None:
    inherited = ProcessFacts(pid=1, cgroup=CRON, login_uid=1500, marks=("STY", "INVOCATION_ID"))
    assert any("STY" in sentence for sentence in owner_of(inherited).evidence)
    assert not any("INVOCATION_ID" in sentence for sentence in owner_of(inherited).evidence)


def test_several_lines_are_all_named() -> None:
    other = CronLine(**{name: getattr(LINE, name) for name in LINE.__struct_fields__} | {"line": 9})
    found = owner_of(ProcessFacts(pid=1, cgroup=CRON, login_uid=1500, role="mail"), (LINE, other), ACCOUNTS)
    assert found.detail == "crontab of deploy, line 4 or 1 more"
    assert any("line 4, crontab of deploy, line 9" in sentence for sentence in found.evidence)


def test_the_line_of_another_account_is_not_blamed() -> None:
    found = owner_of(ProcessFacts(pid=1, cgroup=CRON, login_uid=0, role="mail"), (LINE,), ACCOUNTS)
    assert (found.name, found.detail) == ("root", "crontab of root")


@pytest.mark.parametrize(
    ("cgroup", "unit"),
    [
        ("/system.slice/system-mail\\x2dworker.slice/mail-worker@1.service", "mail-worker@1.service"),
        ("/user.slice/user-1500.slice/user@1500.service/app.slice/own@1.service", "own@1.service"),
        ("/user.slice/user-1500.slice/user@1500.service/init.scope", "init.scope"),
        ("/system.slice/docker.service/inner.service", "docker.service"),
        ("/user.slice", ""),
        ("", ""),
        ("/", ""),
    ],
)
def test_the_unit_of_a_cgroup(cgroup: str, unit: str) -> None:
    assert unit_of(cgroup) == unit


paths = st.one_of(
    st.none(),
    st.text(),
    st.lists(
        st.sampled_from(["user.slice", "user@1500.service", "user@x.service", "session-3.scope", "cron.service"])
    ).map(lambda parts: "/" + "/".join(parts)),
)
any_ancestors = st.lists(
    st.builds(
        AncestorFacts,
        pid=st.integers(1, 9),
        name=st.one_of(st.text(max_size=15), st.sampled_from(["cron", "sshd", "tmux: server", "runsv"])),
        command=st.lists(st.text(), max_size=3).map(tuple),
    ),
    max_size=4,
).map(tuple)


@given(
    st.builds(
        ProcessFacts,
        pid=st.integers(),
        ppid=st.integers(),
        uid=st.integers(),
        user=st.text(),
        role=st.sampled_from(["", "mail"]),
        role_template=st.sampled_from(["", "mail@.service"]),
        cgroup=paths,
        ancestors=any_ancestors,
        session=st.one_of(st.none(), st.integers()),
        login_uid=st.one_of(st.none(), st.integers()),
        terminal=st.booleans(),
        marks=st.lists(st.sampled_from(["STY", "TMUX", "INVOCATION_ID", "SSH_TTY", "XDG_SESSION_CLASS"])).map(tuple),
        session_service=st.sampled_from(["", "sshd", "cron", "su-l"]),
    ),
    st.booleans(),
)
def test_there_is_always_an_answer_with_evidence(process: ProcessFacts, with_line: bool) -> None:
    found = owner_of(process, (LINE,) if with_line else (), ACCOUNTS)
    assert found.evidence and all(sentence.strip() for sentence in found.evidence)
