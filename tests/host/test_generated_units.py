"""The units that crontabs become, before a real systemd: nothing to complain of, and a worker that starts by hand."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from console.schedules.model import Source
from tests.conftest import DemoHost
from tests.host.unpack import unpack
from tests.schedules.case import explained
from tests.schedules.test_cases import CASES, answers
from tests.schedules.test_variants import VARIANTS

pytestmark = pytest.mark.host

FOLDER = "/run/generated"
NOT_HERE = ("is not executable", "Unknown user", "Unknown group", "Failed to resolve user", "does not exist")


def test_systemd_has_nothing_to_say_against_them(demo_host: DemoHost, figure: Callable[[str], None]) -> None:
    found = [each for case in CASES for each in answers(case)]
    for case in VARIANTS:
        found += explained(case["crontab"], msgspec.convert(case["source"], Source), case["scripts"])
    files = {name: text for each in found for name, text in each.units}
    files |= {path: text for each in found for path, text, _ in each.extras if not path.startswith("/")}
    unpack(demo_host, FOLDER, files)
    files["broken.service"] = "[Service]\nStartLimitInterval=1\nExecStart=/bin/true %F\n"
    units = [name.replace("@.", "@1.") for name in files if "/" not in name]
    try:
        said = demo_host.run(
            ["sh", "-c", f"cd {FOLDER} && systemd-analyze verify --man=no {' '.join(units)} 2>&1"],
            check=False,
        ).stdout.splitlines()
    finally:
        demo_host.run(["rm", "-r", FOLDER])
    wrong = [line for line in said if not any(reason in line for reason in NOT_HERE)]
    assert any("broken.service" in line for line in wrong), "it would not have said anything"
    wrong = [line for line in wrong if "broken.service" not in line and "specifiers" not in line]
    figure(f"units: {len(units) - 1} before systemd-analyze verify, complaints: {len(wrong)}")
    assert wrong == []


def test_a_generated_worker_starts_by_hand_and_gets_what_the_line_gave_it(demo_host: DemoHost) -> None:
    """The template as it is, hardened: the process has the line's arguments, folder, user and environment."""
    crontab = (
        'MODE=50% "done"\n'
        '@reboot cd /var/tmp && for n in a b; do nohup /usr/bin/tail -f /dev/null -- "$n" "it\'s $MODE" '
        ">/dev/null 2>&1 & done\n"
    )
    (found,) = explained(crontab, Source(kind="user", path="/var/spool/cron/crontabs/deploy", user="deploy"))
    (role,) = found.roles
    assert (role.instances, role.names, role.user, role.workdir) == (2, ("a", "b"), "deploy", "/var/tmp")
    files = dict(found.units) | {path: text for path, text, _ in found.extras}
    (template,) = dict(found.units)
    unpack(demo_host, FOLDER, files)
    unit = template.replace("@.", "@a.")
    place = "/run/systemd/system"
    try:
        demo_host.run(["sh", "-c", f"cp -r {FOLDER}/* {place} && systemctl daemon-reload && systemctl start {unit}"])
        pid = demo_host.run(["systemctl", "show", "--value", "-p", "MainPID", unit]).stdout.strip()
        read = "cd /proc/$0; cat cmdline; echo; readlink cwd; tr '\\0' '\\n' <environ; stat -c %U ."
        said = demo_host.run(["sh", "-c", read, pid]).stdout.split("\n")
        assert said[0].split("\0")[:-1] == ["/usr/bin/tail", "-f", "/dev/null", "--", "a", 'it\'s 50% "done"']
        assert said[1] == "/var/tmp"
        assert 'MODE=50% "done"' in said and said[-2] == "deploy"
        held = demo_host.run(["systemctl", "show", "--value", "-p", "NoNewPrivileges", unit]).stdout
        assert held.strip() == "yes"
    finally:
        gone = f"rm -rf {place}/{template} {place}/{template}.d {FOLDER}; systemctl daemon-reload"
        demo_host.run(["sh", "-c", f"systemctl stop {unit}; {gone}"], check=False)
