from __future__ import annotations

import pytest

from console.schedules.managed import manager_of

JOB = b"* * * * * /srv/start.sh\n"


@pytest.mark.parametrize(
    ("data", "line", "name", "change"),
    [
        (b"#Ansible: start workers\n" + JOB, 2, "Ansible", "ansible.builtin.cron"),
        (b"# Puppet Name: workers\nPATH=/bin\n" + JOB, 3, "Puppet", "manifest"),
        (b"# Chef Name: workers\n" + JOB, 2, "Chef", "recipe"),
        (b"# Lines below here are managed by Salt, do not edit\n" + JOB + JOB, 3, "Salt", "state"),
        (b"# four senders SALT_CRON_IDENTIFIER:workers\n" + JOB, 2, "Salt", "identifier"),
        (
            b"# Begin Whenever generated tasks for: /srv/app/config/schedule.rb at: 2026-11-29\n"
            + JOB * 2
            + b"\n"
            + JOB,
            5,
            "whenever",
            "config/schedule.rb",
        ),
        (b"# This file is managed by Puppet, changes are lost\n" + JOB * 3, 4, "Puppet", "sources"),
        (b"# Ansible managed\n" + JOB * 2, 3, "Ansible", "template"),
        (b'SHELL="/usr/local/cpanel/bin/jailshell"\n' + JOB, 2, "cPanel", "Cron Jobs"),
    ],
)
def test_whose_a_line_is(data: bytes, line: int, name: str, change: str) -> None:
    found = manager_of(data, line)
    assert found is not None and found.name == name and change in found.change
    assert found.warning.startswith(f"{name} wrote this (line {found.line}: ")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (JOB, 1),
        (b"#Ansible: one\n" + JOB * 2, 3),
        (b"# Puppet Name: one\n" + JOB * 2, 3),
        (JOB + b"# Lines below here are managed by Salt, do not edit\n", 1),
        (b"# Begin Whenever generated tasks for: x\n" + JOB + b"# End Whenever generated tasks for: x\n" + JOB, 4),
        (b"# ask the people of Puppet before\n" + JOB, 2),
    ],
)
def test_a_line_of_nobody(data: bytes, line: int) -> None:
    assert manager_of(data, line) is None
