"""What other supervisors say of their programs."""

from __future__ import annotations

import asyncio

import pytest

from console.errors import HostError
from console.fleet.model import Ident
from console.host.supervisors import pm2_id_of, program_of, stop_program

STATUS = """\
mail:mail_00                     RUNNING   pid 812, uptime 0:01:12
mail:mail_01                     RUNNING   pid 81, uptime 1 day, 0:01:12
reports                          STOPPED   Nov 29 11:02 PM
"""
JLIST = '>>>> In-memory PM2 is out-of-date\n[{"pid": 812, "name": "mail", "pm_id": 3}, {"pid": 0, "pm_id": 4}, 5]'


def test_a_program_is_found_by_its_pid() -> None:
    assert program_of(STATUS, 81) == "mail:mail_01" and program_of(STATUS, 8) == ""
    assert program_of("unix:///var/run/supervisor.sock no such file", 81) == ""
    assert pm2_id_of(JLIST, 812) == "3" and pm2_id_of(JLIST, 81) == ""
    assert pm2_id_of("[PM2] Spawning PM2 daemon", 812) == "" and pm2_id_of("", 812) == ""


def test_another_process_with_the_pid_is_left_alone() -> None:
    with pytest.raises(HostError, match="pid 1 has ended"):
        asyncio.run(stop_program("supervisord", Ident("another boot", 1, 0)))
